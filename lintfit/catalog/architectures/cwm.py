"""Code World Model: llama with a window in three layers of four."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

LLAMA = known("llama")

REQUIRED = KEYS
DEFAULTS = defaults("cwm")
PATTERN = 4
"""The first of so many layers attends to everything where a config does not list them."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``CwmConfig.__post_init__``: the layers one by one."""
    layers = given.get("num_hidden_layers", DEFAULTS["num_hidden_layers"])
    listed = given.get("layer_types") is not None or not isinstance(layers, int) or layers > LARGEST["layers"]
    if listed:
        return given
    return {**given, "layer_types": [_kind(index) for index in range(layers)]}


def _kind(index: int) -> str:
    return "sliding_attention" if index % PATTERN else "full_attention"


def shape(config: Config) -> Shape:
    return LLAMA.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return LLAMA.tensors(config)
