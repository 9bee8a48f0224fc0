"""Jamba: layers of Mamba 1, a few with attention, and in each a gated MLP or experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _mamba1
from lintfit.catalog.architectures._blocks import (
    Shape,
    attention,
    decoder_shape,
    embedding,
    fused_experts,
    gated_mlp,
    head,
    norm,
    router,
)
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.architectures._mamba1 import Mamba1
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("jamba")


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``JambaConfig.attribute_map``."""
    count = given.get("num_local_experts")
    return given if count is None else {"num_experts": count, **given}


def attends(config: Config, index: int) -> bool:
    """Whether a layer has attention (``JambaConfig.layers_block_type``)."""
    return index % config.size("attn_layer_period") == config.count("attn_layer_offset")


def routes(config: Config, index: int) -> bool:
    """Whether a layer has experts (``JambaConfig.layers_num_experts``)."""
    every = config.size("expert_layer_period")
    return config.size("num_experts", kind="experts") > 1 and index % every == config.count("expert_layer_offset")


def shape(config: Config) -> Shape:
    """Its attention knows no positions."""
    numbers = replace(decoder_shape(config), rotary_dim=0)
    routed = sum(routes(config, index) for index in range(numbers.layers))
    if not routed:
        return numbers
    moe = MoE(
        experts=config.size("num_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=numbers.intermediate,
        layers=routed,
    )
    return replace(numbers, moe=moe)


def mixer(config: Config) -> Mamba1:
    """The numbers of the layers of Mamba 1."""
    return _mamba1.under_prefix(config, _mamba1.WEIGHED)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "model.layers.{}"
    hidden, layers = numbers.hidden, numbers.layers
    attended = sum(attends(config, index) for index in range(layers))
    routed = numbers.moe.layers if numbers.moe is not None else 0
    found = [
        *attention(f"{name}.self_attn", numbers, attended),
        *_mamba1.tensors(mixer(config), f"{name}.mamba", hidden, layers - attended),
        *gated_mlp(f"{name}.feed_forward", hidden, numbers.intermediate, layers - routed),
    ]
    if numbers.moe is not None:
        ff = f"{name}.feed_forward"
        found += router(f"{ff}.router", numbers.moe.experts, hidden, routed)
        found += fused_experts(f"{ff}.experts", numbers.moe.experts, hidden, numbers.intermediate, routed)
    return (
        *embedding("model.embed_tokens", numbers.vocab, hidden),
        *found,
        *norm(f"{name}.input_layernorm", hidden, layers),
        *norm(f"{name}.pre_ff_layernorm", hidden, layers),
        *norm("model.final_layernorm", hidden, where="final"),
        *head(numbers),
    )
