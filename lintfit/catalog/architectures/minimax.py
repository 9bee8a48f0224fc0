"""MiniMax-01: layers of lightning attention, some with attention, and Mixtral's experts in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, attention, fused_experts, linear, norm, router
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

MIXTRAL = known("mixtral")

REQUIRED = (*KEYS, "num_local_experts")
DEFAULTS = defaults("minimax")
LINEAR = "linear_attention"


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``MiniMaxConfig.__post_init__``: every second layer has lightning attention where nothing is said."""
    layers = given.get("num_hidden_layers")
    if given.get("layer_types") is not None or not isinstance(layers, int) or not 0 < layers <= LARGEST["layers"]:
        return given
    return {**given, "layer_types": ["full_attention", LINEAR] * (layers // 2) + ["full_attention"] * (layers % 2)}


def shape(config: Config) -> Shape:
    numbers, given = MIXTRAL.shape(config), config.strings("layer_types")
    config.size("block_size")
    if len(given) != numbers.layers:
        raise config.error("layer_types", f"must name each of the {numbers.layers} layers")
    window = config.count("sliding_window", kind="positions") or None
    return replace(numbers, sliding_window=window, sliding_layers=len(given) - given.count(LINEAR) if window else 0)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style, layer = shape(config), DecoderStyle(), "model.layers.{}"
    assert numbers.moe is not None
    hidden, wide, experts, name = numbers.hidden, numbers.query, numbers.moe.experts, f"{layer}.self_attn"
    lightning = config.strings("layer_types").count(LINEAR)
    layers = [
        *attention(name, numbers, numbers.layers - lightning),
        *norm(f"{name}.norm", wide, lightning),
        *linear(f"{name}.qkv_proj", 3 * wide, hidden, lightning),
        *linear(f"{name}.out_proj", hidden, wide, lightning),
        *linear(f"{name}.output_gate", wide, hidden, lightning),
        *router(f"{layer}.mlp.gate", experts, hidden, numbers.layers),
        *fused_experts(f"{layer}.mlp.experts", experts, hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
