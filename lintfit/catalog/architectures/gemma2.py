"""Gemma 2: four norms a layer, soft caps on attention scores and logits, every other layer with a window."""

from __future__ import annotations

from lintfit.catalog.architectures import gemma
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = gemma.REQUIRED
DEFAULTS = defaults("gemma2")
LAYER_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)


def shape(config: Config) -> Shape:
    numbers = replace(decoder_shape(config), activation=config.text("hidden_activation"))
    if numbers.sliding_window and not config.strings("layer_types"):
        return replace(numbers, sliding_layers=(numbers.layers + 1) // 2)
    return numbers


def tensors(config: Config) -> tuple[Tensor, ...]:
    bias = config.flag("attention_bias")
    return decoder(shape(config), Style(qkv_bias=bias, out_bias=bias, layer_norms=LAYER_NORMS))
