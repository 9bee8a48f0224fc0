"""Granite Swash: Granite with windows in three layers of four, and a sink for every head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

GRANITE = known("granite")

REQUIRED = KEYS
WINDOWS: Mapping[str, Any] = {"sliding_window": 128, "layer_types": None, "layer_rope_theta": None}
"""What Granite MoE Swash takes as well."""
DEFAULTS = defaults("granite_swa")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER, flash_by_another_kernel=True)


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``GraniteSWAConfig.__post_init__``: every fourth layer attends in full, the first among them."""
    return with_layer_types(given, DEFAULTS["num_hidden_layers"])


def with_layer_types(given: Mapping[str, Any], default: int) -> Mapping[str, Any]:
    """The layers one by one; ``default``: how many there are where nothing says so."""
    layers = given.get("num_hidden_layers", default)
    if given.get("layer_types") is not None or not isinstance(layers, int) or not 0 < layers <= LARGEST["layers"]:
        return given
    kinds = ["sliding_attention" if index % 4 else "full_attention" for index in range(layers)]
    return {**given, "layer_types": kinds}


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return (*GRANITE.tensors(config), sinks(shape(config)))


def sinks(numbers: Shape) -> Tensor:
    """One number for each head of every layer."""
    return Tensor("model.layers.{}.self_attn.sinks", (numbers.heads,), numbers.layers, "other")
