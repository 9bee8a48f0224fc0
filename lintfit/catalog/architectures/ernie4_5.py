"""ERNIE 4.5, dense."""

from __future__ import annotations

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("ernie4_5")


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    bias = config.flag("use_bias")
    return decoder(shape(config), Style(qkv_bias=bias, out_bias=bias, mlp_bias=bias))
