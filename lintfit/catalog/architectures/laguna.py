"""Laguna: gated attention whose layers may differ in heads, windows and rotary, and experts beside a shared one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _layer_kinds
from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, linear
from lintfit.catalog.architectures._experts import QWEN2, listed
from lintfit.catalog.architectures._layer_kinds import FULL, counted
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

DEFAULTS = defaults("laguna")
TURNED = {"full_attention": 0.5, "sliding_attention": 1.0}
"""The share of a head that is turned where a config has no ``rope_parameters``."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``LagunaConfig.__post_init__``: every layer attends to everything where nothing is said; the first is dense."""
    layers = given.get("num_hidden_layers", DEFAULTS["num_hidden_layers"])
    kinds = [FULL] * layers if counted(layers) else None
    return {**_layer_kinds.listed(given, kinds), "first_k_dense_replace": 1}


def turned(config: Mapping[str, Any], kind: str, head_dim: int) -> int:
    """Elements of a head that layers of a kind turn."""
    rope = config.get("rope_parameters")
    if not isinstance(rope, Mapping):
        return int(head_dim * TURNED.get(kind, 1.0))
    part = rope.get(kind)
    share = part.get("partial_rotary_factor", 1.0) if isinstance(part, Mapping) else 1.0
    return int(head_dim * share) if isinstance(share, int | float) and 0 < share <= 1 else head_dim


def heads(config: Config, layers: int, count: int) -> tuple[int, ...]:
    """Query heads of every layer."""
    given = config.numbers("num_attention_heads_per_layer") or (count,) * layers
    groups = config.size("num_key_value_heads", kind="heads")
    right = all(0 < number <= LARGEST["heads"] and number % groups == 0 for number in given)
    if len(given) != layers or not right:
        what = f"must have a multiple of num_key_value_heads ({groups}) for each of the {layers} layers"
        raise config.error("num_attention_heads_per_layer", what)
    return given


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    heads(config, numbers.layers, numbers.heads)
    return numbers


def gated_attention(config: Config, numbers: Shape) -> list[Tensor]:
    """Attention of all layers, with a gate for each head or for each element."""
    bias, name = config.flag("attention_bias"), "model.layers.{}.self_attn"
    each = heads(config, numbers.layers, numbers.heads)
    by_head = config.get("gating") in (True, "per-head")
    layers: list[Tensor] = []
    for count in sorted(set(each)):
        like = replace(numbers, heads=count)
        layers += attention(name, like, each.count(count), bias=bias, out_bias=bias)
        layers += linear(f"{name}.g_proj", count if by_head else like.query, numbers.hidden, each.count(count))
    return layers


ROW = Plain(
    "Gated attention and Qwen 2's experts",
    normalised=normalised,
    numbers=shape,
    qk_norm="head",
    mlp_bias=False,
    experts=replace(
        QWEN2,
        layers=listed,
        shared="mlp.shared_experts",
        shared_gate="",
        gate_first=False,
        correction="mlp.gate.e_score_correction_bias",
    ),
    mixer=gated_attention,
)
