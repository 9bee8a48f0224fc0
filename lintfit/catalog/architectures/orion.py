"""Orion 14B, by the code in its repository: llama with LayerNorm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS: Mapping[str, Any] = {**llama.DEFAULTS, "vocab_size": 84608}


def shape(config: Config) -> Shape:
    return decoder_shape(config, norm="layernorm")


def tensors(config: Config) -> tuple[Tensor, ...]:
    bias = config.flag("attention_bias")
    return decoder(shape(config), Style(qkv_bias=bias, out_bias=bias, norm_bias=True))
