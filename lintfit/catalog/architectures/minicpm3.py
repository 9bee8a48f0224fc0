"""MiniCPM 3 4B: latent attention, dense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3, llama
from lintfit.catalog.architectures._blocks import Shape, gated_mlp
from lintfit.catalog.architectures._decoder import Style, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = (*llama.REQUIRED, "kv_lora_rank")
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 73448,
    "hidden_size": 2560,
    "intermediate_size": 6400,
    "num_hidden_layers": 62,
    "num_attention_heads": 40,
    "hidden_act": "silu",
    "max_position_embeddings": 32768,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
    "kv_lora_rank": 256,
    "q_lora_rank": 768,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
}


def shape(config: Config) -> Shape:
    return deepseek_v3.latent_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style, bias = shape(config), Style(), config.flag("mlp_bias")
    layers = [
        *deepseek_v3.latent_attention(config, numbers),
        *gated_mlp("model.layers.{}.mlp", numbers.hidden, numbers.intermediate, numbers.layers, bias=bias),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
