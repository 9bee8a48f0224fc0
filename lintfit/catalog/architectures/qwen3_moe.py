"""Qwen 3 with routed experts: 30B-A3B, 235B-A22B, Coder 480B-A35B."""

from __future__ import annotations

from lintfit.catalog.architectures import qwen2_moe
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, fused_experts, gated_mlp, router
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, MoE, Tensor
from lintfit.frozen import replace

REQUIRED = (*KEYS, "moe_intermediate_size")
DEFAULTS = defaults("qwen3_moe")
CODE = Code(
    layer="Qwen3MoeDecoderLayer", moe_block="Qwen3MoeSparseMoeBlock", moe_leaf_since="0.18.0", liger=True, unsloth=True
)


def shape(config: Config) -> Shape:
    moe = MoE(
        experts=config.size("num_experts", "num_local_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=config.size("moe_intermediate_size", kind="intermediate"),
        layers=qwen2_moe.sparse_layers(config),
    )
    return replace(decoder_shape(config, qk_norm=True), moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, mlp = shape(config), config.flag("attention_bias"), "model.layers.{}.mlp"
    style = DecoderStyle(qkv_bias=bias, out_bias=bias, qk_norm=(numbers.head_dim, numbers.head_dim))
    moe = numbers.moe
    assert moe is not None
    layers = [
        *self_attention(numbers, style),
        *gated_mlp(mlp, numbers.hidden, numbers.intermediate, numbers.layers - moe.layers),
        *router(f"{mlp}.gate", moe.experts, numbers.hidden, moe.layers),
        *fused_experts(f"{mlp}.experts", moe.experts, numbers.hidden, moe.intermediate, moe.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
