"""Hy3: Hunyuan's third generation, DeepSeek V3's experts behind attention with norms on the heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3, exaone_moe, llama
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 120832,
    "hidden_size": 4096,
    "intermediate_size": 13312,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_act": "silu",
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
    "num_experts": 192,
    "num_experts_per_tok": 8,
    "num_shared_experts": 1,
    "moe_intermediate_size": 1536,
    "enable_moe_fp32_combine": True,
    "mlp_layer_types": None,
}
NOTES = deepseek_v3.NOTES


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Only ``mlp_layer_types`` says which layers are dense: the first, where it is not there."""
    return {**given, "first_k_dense_replace": 1}


def shape(config: Config) -> Shape:
    return exaone_moe.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("attention_bias")
    style = Style(qkv_bias=bias, out_bias=bias, qk_norm=(numbers.head_dim, numbers.head_dim))
    mlps = deepseek_v3.mlps(numbers, bias=config.flag("mlp_bias"))
    return around(numbers, style, [*self_attention(numbers, style), *mlps, *layer_norms(numbers, style)])
