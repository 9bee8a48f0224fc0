"""Phi 3.5 MoE."""

from __future__ import annotations

from lintfit.catalog.architectures import llama, mixtral
from lintfit.catalog.architectures._blocks import Shape, fused_experts, router
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = (*llama.REQUIRED, "num_local_experts")
DEFAULTS = defaults("phimoe")


def shape(config: Config) -> Shape:
    return replace(mixtral.shape(config), norm="layernorm")


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, mlp = shape(config), config.flag("attention_bias"), "model.layers.{}.mlp"
    style = Style(qkv_bias=bias, out_bias=bias, norm_bias=True)
    assert numbers.moe is not None
    experts = numbers.moe.experts
    layers = [
        *self_attention(numbers, style),
        *router(f"{mlp}.router", experts, numbers.hidden, numbers.layers),
        *fused_experts(f"{mlp}.experts", experts, numbers.hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, style),
    ]
    found = around(numbers, style, layers)
    if not config.flag("lm_head_bias"):
        return found
    return (*found, Tensor("lm_head.bias", (numbers.vocab,), 1, "bias", "head"))
