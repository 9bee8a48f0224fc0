"""GLM 4.5, 4.5 Air and 4.6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3, llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = (*llama.REQUIRED, "n_routed_experts", "moe_intermediate_size")
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 151552,
    "hidden_size": 4096,
    "intermediate_size": 10944,
    "num_hidden_layers": 46,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "hidden_act": "silu",
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "partial_rotary_factor": 0.5,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "moe_intermediate_size": 1408,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "n_routed_experts": 128,
    "first_k_dense_replace": 1,
    "use_qk_norm": False,
}
NOTES = ("no multi-token-prediction layers (transformers does not load those of a checkpoint)",)


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=config.flag("use_qk_norm"))
    return replace(numbers, moe=deepseek_v3.moe_of(config))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    head = numbers.head_dim
    style = Style(qkv_bias=config.flag("attention_bias"), qk_norm=(head, head) if numbers.qk_norm else None)
    layers = [
        *self_attention(numbers, style),
        *deepseek_v3.mlps(numbers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
