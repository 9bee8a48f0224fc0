"""ERNIE 4.5 with routed and shared experts: 21B-A3B, 300B-A47B."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import (
    Shape,
    around,
    attention,
    decoder_shape,
    fused_experts,
    gated_mlp,
    norm,
    router,
)
from lintfit.catalog.architectures._decoder import KEYS, LAYER_NORMS
from lintfit.catalog.architectures._experts import NO_MTP
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

REQUIRED = (*KEYS, "moe_intermediate_size")
DEFAULTS = defaults("ernie4_5_moe")
NOTES = NO_MTP


def routes(config: Mapping[str, Any], layers: int, index: int) -> bool:
    """Whether a layer has experts: every ``moe_layer_interval``-th between the first and the last that may."""
    last = int(config["moe_layer_end_index"])
    within = int(config["moe_layer_start_index"]) <= index <= (layers - 1 if last == -1 else last)
    return within and (index + 1) % int(config["moe_layer_interval"]) == 0


def shape(config: Config) -> Shape:
    numbers, width = decoder_shape(config), config.size("moe_intermediate_size", kind="intermediate")
    config.size("moe_layer_interval", kind="layers")
    for key in ("moe_layer_start_index", "moe_layer_end_index"):
        if not isinstance(config[key], int) or isinstance(config[key], bool):
            raise config.error(key, "must be a whole number")
    moe = MoE(
        experts=config.size("moe_num_experts", kind="experts"),
        top_k=config.size("moe_k", kind="experts"),
        intermediate=width,
        layers=sum(routes(config, numbers.layers, index) for index in range(numbers.layers)),
        shared_intermediate=width * config.count("moe_num_shared_experts", kind="experts"),
    )
    return replace(numbers, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, mlp = shape(config), config.flag("use_bias"), "model.layers.{}.mlp"
    moe, hidden, layer = numbers.moe, numbers.hidden, "model.layers.{}"
    assert moe is not None
    layers = [
        *attention(f"{layer}.self_attn", numbers, numbers.layers, bias=bias, out_bias=bias),
        *gated_mlp(mlp, hidden, numbers.intermediate, numbers.layers - moe.layers, bias=bias),
        *router(f"{mlp}.gate", moe.experts, hidden, moe.layers),
        Tensor(f"{mlp}.gate.moe_statics.e_score_correction_bias", (1, moe.experts), moe.layers, "other"),
        *fused_experts(f"{mlp}.experts", moe.experts, hidden, moe.intermediate, moe.layers),
        *(tensor for name in LAYER_NORMS for tensor in norm(f"{layer}.{name}", hidden, numbers.layers)),
    ]
    if moe.shared_intermediate:
        layers += gated_mlp(f"{mlp}.shared_experts", hidden, moe.shared_intermediate, moe.layers, bias=bias)
    found = around(numbers, layers)
    return (*found, Tensor("lm_head.bias", (numbers.vocab,), 1, "bias", "head")) if bias else found
