"""Mixtral 8x7B and 8x22B."""

from __future__ import annotations

from lintfit.catalog.architectures import mistral
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, fused_experts, router
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

REQUIRED = (*mistral.REQUIRED, "num_local_experts")
DEFAULTS = defaults("mixtral")


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    moe = MoE(
        experts=config.size("num_local_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=numbers.intermediate,
        layers=numbers.layers,
    )
    return replace(numbers, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    assert numbers.moe is not None
    experts, mlp = numbers.moe.experts, "model.layers.{}.mlp"
    layers = [
        *self_attention(numbers, Style()),
        *router(f"{mlp}.gate", experts, numbers.hidden, numbers.layers),
        *fused_experts(f"{mlp}.experts", experts, numbers.hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, Style()),
    ]
    return around(numbers, Style(), layers)
