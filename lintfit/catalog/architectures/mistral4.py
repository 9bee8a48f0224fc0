"""Mistral 4's text model: DeepSeek's latent attention and experts, scored by a softmax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = deepseek_v3.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **deepseek_v3.DEFAULTS,
    "vocab_size": 131072,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "n_routed_experts": 128,
    "kv_lora_rank": 256,
    "q_lora_rank": 1024,
    "qk_nope_head_dim": 64,
    "num_experts_per_tok": 4,
    "first_k_dense_replace": 0,
    "max_position_embeddings": 1048576,
}


def shape(config: Config) -> Shape:
    return deepseek_v3.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return deepseek_v3.tensors(config)
