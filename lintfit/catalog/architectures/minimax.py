"""MiniMax-01: layers of lightning attention, some with attention, and Mixtral's experts in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, linear, norm
from lintfit.catalog.architectures._blocks import attention as softmax_attention
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.architectures._experts import Experts
from lintfit.catalog.architectures._layer_kinds import FULL, LINEAR, counted, listed
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``MiniMaxConfig.__post_init__``: every second layer has lightning attention where nothing is said."""
    layers = given.get("num_hidden_layers")
    return listed(given, ([FULL, LINEAR] * layers)[:layers] if counted(layers) else None)


def shape(config: Config) -> Shape:
    numbers, given = decoder_shape(config), config.strings("layer_types")
    config.size("block_size")
    if len(given) != numbers.layers:
        raise config.error("layer_types", f"must name each of the {numbers.layers} layers")
    window = config.count("sliding_window", kind="positions") or None
    return replace(numbers, sliding_window=window, sliding_layers=len(given) - given.count(LINEAR) if window else 0)


def attention(config: Config, numbers: Shape) -> list[Tensor]:
    """Attention in some layers, lightning attention in the others."""
    name, hidden, wide = "model.layers.{}.self_attn", numbers.hidden, numbers.query
    lightning = config.strings("layer_types").count(LINEAR)
    return [
        *softmax_attention(name, numbers, numbers.layers - lightning),
        *norm(f"{name}.norm", wide, lightning),
        *linear(f"{name}.qkv_proj", 3 * wide, hidden, lightning),
        *linear(f"{name}.out_proj", hidden, wide, lightning),
        *linear(f"{name}.output_gate", wide, hidden, lightning),
    ]


ROW = Plain(
    "Mixtral's experts behind two kinds of attention",
    required=(*KEYS, "num_local_experts"),
    normalised=normalised,
    numbers=shape,
    experts=Experts(("num_local_experts",)),
    mixer=attention,
)
