"""DeepSeek MoE 16B, by the code in its own repository: one module per expert."""

from __future__ import annotations

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, gated_mlp, router
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

REQUIRED = (*KEYS, "moe_intermediate_size")
DEFAULTS = defaults("llama", vocab_size=102400, moe_intermediate_size=1407, moe_layer_freq=1, first_k_dense_replace=0)
"""``configuration_deepseek.py``."""
CODE = Code(chooses_kernel=False)


def shape(config: Config) -> Shape:
    return replace(decoder_shape(config), moe=deepseek_v3.moe_of(config))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style, mlp = shape(config), DecoderStyle(), "model.layers.{}.mlp"
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
