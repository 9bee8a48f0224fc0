"""LFM 2 with routed experts (8B-A1B)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import lfm2
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, fused_experts, router
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

REQUIRED = lfm2.REQUIRED
DEFAULTS = defaults("lfm2_moe", hidden_act="silu")


def normalised(given: Mapping[str, Any]) -> dict[str, Any]:
    return lfm2.normalised(given)


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    moe = MoE(
        experts=config.size("num_experts", "num_local_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=config.size("moe_intermediate_size", kind="intermediate"),
        layers=max(0, numbers.layers - config.count("num_dense_layers", kind="layers")),
    )
    return replace(numbers, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "model.layers.{}.feed_forward"
    moe = numbers.moe
    assert moe is not None
    experts = [
        *fused_experts(f"{name}.experts", moe.experts, numbers.hidden, moe.intermediate, moe.layers),
        *router(f"{name}.gate", moe.experts, numbers.hidden, moe.layers),
    ]
    return lfm2.with_mlps(config, numbers, numbers.layers - moe.layers, experts)
