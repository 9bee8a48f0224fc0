"""Laguna: gated attention whose layers may differ in heads, windows and rotary, and experts beside a shared one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3, exaone_moe
from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, linear
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("laguna")
TURNED = {"full_attention": 0.5, "sliding_attention": 1.0}
"""The share of a head that is turned where a config has no ``rope_parameters``."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``LagunaConfig.__post_init__``: every layer attends to everything where nothing is said; the first is dense."""
    layers = given.get("num_hidden_layers", DEFAULTS["num_hidden_layers"])
    found = {**given, "first_k_dense_replace": 1}
    if given.get("layer_types") is None and isinstance(layers, int) and 0 < layers <= LARGEST["layers"]:
        found["layer_types"] = ["full_attention"] * layers
    return found


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
    moe = MoE(
        experts=config.size("num_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=config.size("moe_intermediate_size", kind="intermediate"),
        layers=exaone_moe.sparse_layers(config, numbers.layers),
        shared_intermediate=config.size("shared_expert_intermediate_size", kind="intermediate"),
    )
    return replace(numbers, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, name = shape(config), config.flag("attention_bias"), "model.layers.{}.self_attn"
    moe = numbers.moe
    assert moe is not None
    style = DecoderStyle(qk_norm=(numbers.head_dim, numbers.head_dim))
    each = heads(config, numbers.layers, numbers.heads)
    by_head = config.get("gating") in (True, "per-head")
    layers: list[Tensor] = []
    for count in sorted(set(each)):
        like = replace(numbers, heads=count)
        layers += attention(name, like, each.count(count), bias=bias, out_bias=bias)
        layers += linear(f"{name}.g_proj", count if by_head else like.query, numbers.hidden, each.count(count))
    layers += deepseek_v3.mlps(numbers)
    layers.append(Tensor("model.layers.{}.mlp.gate.e_score_correction_bias", (moe.experts,), moe.layers, "other"))
    return around(numbers, style, [*layers, *layer_norms(numbers, style)])
