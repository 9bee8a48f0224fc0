"""Helium 1: llama with an output projection that has no bias of its own and is square."""

from __future__ import annotations

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("helium")


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return decoder(shape(config), Style(qkv_bias=config.flag("attention_bias"), mlp_bias=config.flag("mlp_bias")))
