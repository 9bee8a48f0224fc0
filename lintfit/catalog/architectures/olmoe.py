"""OLMoE 1B-7B."""

from __future__ import annotations

from lintfit.catalog.architectures import olmo
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, fused_experts, router
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

REQUIRED = (*olmo.REQUIRED, "num_experts")
DEFAULTS = defaults("olmoe")


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    moe = MoE(
        experts=config.size("num_experts", "num_local_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=numbers.intermediate,
        layers=numbers.layers,
    )
    return replace(numbers, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return with_norms(config, Style().layer_norms)


def with_norms(config: Config, norms: tuple[str, ...]) -> tuple[Tensor, ...]:
    """All tensors, with these norms of a layer."""
    numbers, bias, mlp = shape(config), config.flag("attention_bias"), "model.layers.{}.mlp"
    style = Style(qkv_bias=bias, out_bias=bias, layer_norms=norms, qk_norm=(numbers.query, numbers.key_value))
    assert numbers.moe is not None
    experts = numbers.moe.experts
    layers = [
        *self_attention(numbers, style),
        *router(f"{mlp}.gate", experts, numbers.hidden, numbers.layers),
        *fused_experts(f"{mlp}.experts", experts, numbers.hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
