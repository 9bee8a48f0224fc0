"""OpenAI's first GPT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import gpt2
from lintfit.catalog.architectures._blocks import Shape, embedding, head, norm
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

REQUIRED = gpt2.REQUIRED
DEFAULTS = defaults(
    "openai_gpt", activation_function="gelu_new", scale_attn_weights=True, reorder_and_upcast_attn=False
)
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER)
ACTIVATIONS = {"gelu": "gelu_new"}
"""What its names of activations stand for (``ACT_FNS``)."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The activation under GPT-2's name and in its words; the MLP is always four times as wide as the stream."""
    named = given.get("afn", DEFAULTS["afn"])
    known = ACTIVATIONS.get(named, named) if isinstance(named, str) else named
    return {**given, "activation_function": known, "n_inner": None}


def shape(config: Config) -> Shape:
    return gpt2.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer = shape(config), "transformer.h.{}"
    hidden, layers, wide = numbers.hidden, numbers.layers, numbers.intermediate
    return (
        *embedding("transformer.tokens_embed", numbers.vocab, hidden),
        *embedding("transformer.positions_embed", numbers.max_positions or 0, hidden),
        *gpt2.conv1d(f"{layer}.attn.c_attn", hidden, 3 * hidden, layers),
        *gpt2.conv1d(f"{layer}.attn.c_proj", hidden, hidden, layers),
        *norm(f"{layer}.ln_1", hidden, layers, bias=True),
        *gpt2.conv1d(f"{layer}.mlp.c_fc", hidden, wide, layers),
        *gpt2.conv1d(f"{layer}.mlp.c_proj", wide, hidden, layers),
        *norm(f"{layer}.ln_2", hidden, layers, bias=True),
        *head(numbers),
    )
