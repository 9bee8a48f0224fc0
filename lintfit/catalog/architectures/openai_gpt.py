"""OpenAI's first GPT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _gpt
from lintfit.catalog.architectures._plain import CLASSIC
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code
from lintfit.frozen import replace

DEFAULTS = defaults("openai_gpt")
ACTIVATIONS = {"gelu": "gelu_new"}
"""What its names of activations stand for (``ACT_FNS``)."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The activation under GPT-2's name and in its words; the MLP is always four times as wide as the stream."""
    named = given.get("afn", DEFAULTS["afn"])
    known = ACTIVATIONS.get(named, named) if isinstance(named, str) else named
    return {**given, "activation_function": known, "n_inner": None}


ROW = replace(
    CLASSIC,
    about="GPT-2's parts with norms behind them",
    own={"activation_function": "gelu_new", "reorder_and_upcast_attn": False},
    required=_gpt.KEYS,
    normalised=normalised,
    numbers=_gpt.numbers,
    names=replace(
        _gpt.NAMES,
        embedding="transformer.tokens_embed",
        positions="transformer.positions_embed",
        final="",
        order="mixer norm mlp norm",
    ),
    input_first=True,
    code=Code(sdpa=NEVER, flash_attention_2=NEVER),
)
