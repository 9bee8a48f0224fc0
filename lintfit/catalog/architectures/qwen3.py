"""Qwen 3, dense."""

from __future__ import annotations

from lintfit.catalog.architectures import qwen2
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = qwen2.REQUIRED
DEFAULTS = defaults("qwen3")


def shape(config: Config) -> Shape:
    return decoder_shape(config, qk_norm=True)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("attention_bias")
    return decoder(numbers, Style(qkv_bias=bias, out_bias=bias, qk_norm=(numbers.head_dim, numbers.head_dim)))
