"""DeepSeek V2 and V2 Lite, DeepSeek Coder V2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._decoder import Style, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = deepseek_v3.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **deepseek_v3.DEFAULTS,
    "vocab_size": 102400,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "first_k_dense_replace": 0,
    "max_position_embeddings": 2048,
    "mlp_bias": False,
}


def shape(config: Config) -> Shape:
    return deepseek_v3.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style = shape(config), Style()
    mlps = deepseek_v3.mlps(numbers, bias=config.flag("mlp_bias"))
    return around(numbers, style, [*deepseek_v3.latent_attention(config, numbers), *mlps, *layer_norms(numbers, style)])
