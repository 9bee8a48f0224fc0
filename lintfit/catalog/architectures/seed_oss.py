"""Seed-OSS 36B."""

from __future__ import annotations

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("seed_oss")


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    style = Style(
        qkv_bias=config.flag("attention_bias"),
        out_bias=config.flag("attention_out_bias"),
        mlp_bias=config.flag("mlp_bias"),
    )
    return decoder(shape(config), style)
