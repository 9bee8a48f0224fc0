"""Hunyuan with routed experts and a shared one (A13B)."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, attention, fused_experts, gated_mlp, norm, router
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

HUNYUAN_V1_DENSE = known("hunyuan_v1_dense")

REQUIRED = (*KEYS, "num_experts")
DEFAULTS = defaults("hunyuan_v1_moe")


def shape(config: Config) -> Shape:
    numbers = HUNYUAN_V1_DENSE.shape(config)
    listed = config.get("moe_topk")  # may state one for each layer; published ones are all the same
    top_k = config.numbers("moe_topk")[0] if isinstance(listed, list) and listed else config.size("moe_topk")
    moe = MoE(
        experts=config.size("num_experts", kind="experts"),
        top_k=top_k,
        intermediate=numbers.intermediate,
        layers=numbers.layers,
        shared_intermediate=numbers.intermediate,
    )
    return replace(numbers, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, style = shape(config), config.flag("attention_bias"), DecoderStyle()
    moe, layer, layers, hidden = numbers.moe, "model.layers.{}", numbers.layers, numbers.hidden
    assert moe is not None
    found = [
        *attention(f"{layer}.self_attn", numbers, layers, bias=bias, out_bias=bias),
        *norm(f"{layer}.self_attn.query_layernorm", numbers.head_dim, layers),
        *norm(f"{layer}.self_attn.key_layernorm", numbers.head_dim, layers),
        *router(f"{layer}.mlp.gate.wg", moe.experts, hidden, layers),
        *fused_experts(f"{layer}.mlp.experts", moe.experts, hidden, moe.intermediate, layers),
        *gated_mlp(f"{layer}.mlp.shared_mlp", hidden, moe.shared_intermediate, layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, found)
