"""Command R7B, Command A and Aya Expanse 2: Cohere with sliding windows in three of four layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _sliding, cohere
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = cohere.REQUIRED
DEFAULTS = defaults("cohere2", sliding_window_pattern=4)


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``Cohere2Config.__post_init__``."""
    every = given.get("sliding_window_pattern", given.get("_sliding_window_pattern", 4))
    return _sliding.named(given, given.get("num_hidden_layers"), every)


def shape(config: Config) -> Shape:
    numbers = replace(decoder_shape(config, norm="layernorm"), parallel_residual=True)
    if numbers.sliding_window and not config.strings("layer_types"):
        every = config.size("sliding_window_pattern", "_sliding_window_pattern", kind="layers")
        return replace(numbers, sliding_layers=numbers.layers - numbers.layers // every)
    return numbers


def tensors(config: Config) -> tuple[Tensor, ...]:
    bias = config.flag("attention_bias")
    return decoder(shape(config), Style(qkv_bias=bias, out_bias=bias, layer_norms=("input_layernorm",)))
