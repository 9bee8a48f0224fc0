"""Hy3: Hunyuan's third generation, DeepSeek V3's experts behind attention with norms on the heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3, exaone_moe
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = KEYS
DEFAULTS = defaults("hy_v3")
NOTES = deepseek_v3.NOTES


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Only ``mlp_layer_types`` says which layers are dense: the first, where it is not there."""
    return {**given, "first_k_dense_replace": 1}


def shape(config: Config) -> Shape:
    return exaone_moe.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("attention_bias")
    style = DecoderStyle(qkv_bias=bias, out_bias=bias, qk_norm=(numbers.head_dim, numbers.head_dim))
    mlps = deepseek_v3.mlps(numbers, bias=config.flag("mlp_bias"))
    return around(numbers, style, [*self_attention(numbers, style), *mlps, *layer_norms(numbers, style)])
