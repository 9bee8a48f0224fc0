"""Granite 4: Mamba 2 and attention in turns, a shared MLP in every layer, with experts or without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _mamba2
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, fused_experts, linear, router
from lintfit.catalog.architectures._decoder import DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "shared_intermediate_size")
DEFAULTS = defaults("granitemoehybrid")
ATTENTION = frozenset({"attention", "full_attention"})


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``GraniteMoeHybridConfig``'s other name for its kinds of layers."""
    kinds = given.get("layers_block_type")
    return given if kinds is None else {"layer_types": kinds, **given}


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    shared = config.size("shared_intermediate_size", kind="intermediate")
    rotary = numbers.head_dim if config.get("position_embedding_type") == "rope" else 0
    count = config.count("num_local_experts", kind="experts")
    if not count:
        return replace(numbers, intermediate=shared, rotary_dim=rotary)
    moe = MoE(
        experts=count,
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=numbers.intermediate,
        layers=numbers.layers,
        shared_intermediate=shared,
    )
    return replace(numbers, rotary_dim=rotary, moe=moe)


def attending(config: Config) -> int:
    """Layers with attention: none where ``layer_types`` does not say."""
    return sum(kind in ATTENTION for kind in config.strings("layer_types"))


def mixer(config: Config) -> Mamba2:
    """The numbers of the layers without attention."""
    width = config.size("mamba_expand") * config.size("hidden_size", kind="hidden")
    return _mamba2.mixer(config, width, out_bias=config.flag("mamba_proj_bias"))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name, bias = shape(config), "model.layers.{}", config.flag("attention_bias")
    style, layers, attended = DecoderStyle(qkv_bias=bias, out_bias=bias), numbers.layers, attending(config)
    shared = config.size("shared_intermediate_size", kind="intermediate")
    found = [
        *self_attention(replace(numbers, layers=attended), style),
        *_mamba2.tensors(mixer(config), f"{name}.mamba", numbers.hidden, layers - attended),
        *linear(f"{name}.shared_mlp.input_linear", 2 * shared, numbers.hidden, layers),
        *linear(f"{name}.shared_mlp.output_linear", numbers.hidden, shared, layers),
        *layer_norms(numbers, style),
    ]
    if numbers.moe is not None:
        moe = f"{name}.block_sparse_moe"
        found += router(f"{moe}.router", numbers.moe.experts, numbers.hidden, layers)
        found += fused_experts(f"{moe}.experts", numbers.moe.experts, numbers.hidden, numbers.intermediate, layers)
    return around(numbers, style, found)
