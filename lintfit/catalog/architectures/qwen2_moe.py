"""Qwen 1.5 MoE and Qwen 2 57B-A14B: routed experts beside one shared expert with its own gate."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, fused_experts, gated_mlp, router
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, MoE, Tensor
from lintfit.frozen import replace

REQUIRED = (*KEYS, "num_experts", "moe_intermediate_size")
DEFAULTS = defaults("qwen2_moe")
CODE = Code(layer="Qwen2MoeDecoderLayer", moe_block="Qwen2MoeSparseMoeBlock", moe_leaf_since="0.18.0")


def sparse_layers(config: Config) -> int:
    """Layers with routed experts: every ``decoder_sparse_step``-th that ``mlp_only_layers`` does not name."""
    step, dense = config.size("decoder_sparse_step", kind="layers"), config.numbers("mlp_only_layers")
    layers = range(config.size("num_hidden_layers", kind="layers"))
    return sum((layer + 1) % step == 0 and layer not in dense for layer in layers)


def shape(config: Config) -> Shape:
    moe = MoE(
        experts=config.size("num_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=config.size("moe_intermediate_size", kind="intermediate"),
        layers=sparse_layers(config),
        shared_intermediate=config.size("shared_expert_intermediate_size", kind="intermediate"),
    )
    return replace(decoder_shape(config), moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, mlp = shape(config), "model.layers.{}.mlp"
    style = DecoderStyle(qkv_bias=config.flag("qkv_bias"))
    moe = numbers.moe
    assert moe is not None
    layers = [
        *self_attention(numbers, style),
        *gated_mlp(mlp, numbers.hidden, numbers.intermediate, numbers.layers - moe.layers),
        *router(f"{mlp}.gate", moe.experts, numbers.hidden, moe.layers),
        *fused_experts(f"{mlp}.experts", moe.experts, numbers.hidden, moe.intermediate, moe.layers),
        *gated_mlp(f"{mlp}.shared_expert", numbers.hidden, moe.shared_intermediate, moe.layers),
        *router(f"{mlp}.shared_expert_gate", 1, numbers.hidden, moe.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
