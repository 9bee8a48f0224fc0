"""Granite 3 MoE and PowerMoE."""

from __future__ import annotations

from lintfit.catalog.architectures import granite, mixtral
from lintfit.catalog.architectures._blocks import Shape, fused_experts, router
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = (*granite.REQUIRED, "num_local_experts")
DEFAULTS = defaults("granitemoe")


def shape(config: Config) -> Shape:
    return mixtral.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, moe = shape(config), config.flag("attention_bias"), "model.layers.{}.block_sparse_moe"
    style = Style(qkv_bias=bias, out_bias=bias)
    assert numbers.moe is not None
    experts = numbers.moe.experts
    layers = [
        *self_attention(numbers, style),
        *router(f"{moe}.router", experts, numbers.hidden, numbers.layers),
        *fused_experts(f"{moe}.experts", experts, numbers.hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
