"""MiniMax M2: Mixtral's layout with norms over all query and key heads, and sigmoid routing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import llama, mixtral
from lintfit.catalog.architectures._blocks import Shape, fused_experts, router
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = llama.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 200064,
    "hidden_size": 3072,
    "intermediate_size": 1536,
    "num_hidden_layers": 62,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_act": "silu",
    "max_position_embeddings": 196608,
    "tie_word_embeddings": False,
    "attention_dropout": 0.0,
    "num_experts_per_tok": 8,
    "num_local_experts": 256,
    "output_router_logits": False,
}
NOTES = ("no multi-token-prediction layers (transformers does not load those of a checkpoint)",)


def shape(config: Config) -> Shape:
    numbers = mixtral.shape(config)
    turned = config.count("rotary_dim", kind="head_dim") if config.get("rotary_dim") else numbers.rotary_dim
    return replace(numbers, qk_norm=True, rotary_dim=turned)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, mlp = shape(config), "model.layers.{}.mlp"
    style = Style(qk_norm=(numbers.query, numbers.key_value))
    assert numbers.moe is not None
    experts = numbers.moe.experts
    layers = [
        *self_attention(numbers, style),
        *router(f"{mlp}.gate", experts, numbers.hidden, numbers.layers),
        *fused_experts(f"{mlp}.experts", experts, numbers.hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
