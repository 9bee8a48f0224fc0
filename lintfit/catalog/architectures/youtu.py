"""Youtu-LLM: DeepSeek's latent attention and a dense MLP in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import minicpm3
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = minicpm3.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **{key: value for key, value in minicpm3.DEFAULTS.items() if key != "mlp_bias"},
    "vocab_size": 128256,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 32,
    "num_attention_heads": 16,
    "max_position_embeddings": 131072,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def shape(config: Config) -> Shape:
    return minicpm3.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return minicpm3.tensors(config)
