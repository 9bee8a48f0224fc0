"""DeepSeek MoE 16B, by the code in its own repository: one module per expert."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3, known
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, gated_mlp, router
from lintfit.catalog.architectures._decoder import KEYS, Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

LLAMA = known("llama")

REQUIRED = (*KEYS, "moe_intermediate_size")
DEFAULTS: Mapping[str, Any] = {
    **LLAMA.defaults,
    "vocab_size": 102400,
    "moe_intermediate_size": 1407,
    "n_shared_experts": None,
    "n_routed_experts": None,
    "num_experts_per_tok": None,
    "moe_layer_freq": 1,
    "first_k_dense_replace": 0,
}
CODE = Code(chooses_kernel=False)


def shape(config: Config) -> Shape:
    return replace(decoder_shape(config), moe=deepseek_v3.moe_of(config))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style, mlp = shape(config), Style(), "model.layers.{}.mlp"
    moe, hidden = numbers.moe, numbers.hidden
    assert moe is not None
    layers = [
        *self_attention(numbers, style),
        *gated_mlp(mlp, hidden, numbers.intermediate, numbers.layers - moe.layers),
        *router(f"{mlp}.gate", moe.experts, hidden, moe.layers),
        *gated_mlp(f"{mlp}.experts.{{}}", hidden, moe.intermediate, moe.layers * moe.experts),
        *gated_mlp(f"{mlp}.shared_experts", hidden, moe.shared_intermediate, moe.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
