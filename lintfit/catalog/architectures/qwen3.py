"""Qwen 3, dense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import qwen2
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = qwen2.REQUIRED
DEFAULTS: Mapping[str, Any] = {**qwen2.DEFAULTS, "head_dim": 128, "attention_bias": False}


def shape(config: Config) -> Shape:
    return decoder_shape(config, qk_norm=True)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("attention_bias")
    return decoder(numbers, Style(qkv_bias=bias, out_bias=bias, qk_norm=(numbers.head_dim, numbers.head_dim)))
