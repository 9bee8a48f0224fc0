"""Gemma 3 without its vision tower (270m, 1b, and the language model of the larger ones)."""

from __future__ import annotations

from lintfit.catalog.architectures import gemma2
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers")
DEFAULTS = defaults("gemma3_text", sliding_window_pattern=6)


def shape(config: Config) -> Shape:
    numbers = replace(decoder_shape(config, qk_norm=True), activation=config.text("hidden_activation"))
    if numbers.sliding_window and not config.strings("layer_types"):
        every = config.size("sliding_window_pattern", "_sliding_window_pattern", kind="layers")
        return replace(numbers, sliding_layers=numbers.layers - numbers.layers // every)
    return numbers


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("attention_bias")
    norms = (numbers.head_dim, numbers.head_dim)
    return decoder(numbers, Style(qkv_bias=bias, out_bias=bias, qk_norm=norms, layer_norms=gemma2.LAYER_NORMS))
