"""Gemma 4: heads of two widths, experts beside the MLP (26B-A4B), an input of its own for every layer (E2B, E4B)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.catalog.architectures import _gemma
from lintfit.catalog.architectures._blocks import (
    Shape,
    around,
    attention,
    decoder_shape,
    fused_experts,
    gated_mlp,
    linear,
    norm,
)
from lintfit.catalog.architectures._decoder import GEMMA_NORMS
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers")
DEFAULTS = defaults("gemma4_text", global_head_dim=512)
EVERY = 6
"""The last of so many layers attends to everything where a config does not list them."""


def slides(config: Mapping[str, Any], layers: int) -> list[bool]:
    """Whether each layer attends within the window only; the last one never does."""
    return [layer_slides(config, layers, layer) for layer in range(layers)]


def layer_slides(config: Mapping[str, Any], layers: int, layer: int) -> bool:
    """The same of one layer."""
    return layer != layers - 1 and _gemma.layer_slides(config, layers, EVERY, layer)


def shape(config: Config) -> Shape:
    numbers = replace(decoder_shape(config, qk_norm=True), activation=config.text("hidden_activation"))
    numbers = replace(numbers, sliding_layers=sum(slides(config, numbers.layers)))
    if not config.flag("enable_moe_block"):
        return numbers
    moe = MoE(
        experts=config.size("num_experts", kind="experts"),
        top_k=config.size("top_k_experts", kind="experts"),
        intermediate=config.size("moe_intermediate_size", kind="intermediate"),
        layers=numbers.layers,
    )
    return replace(numbers, moe=moe)


def wide(config: Config, numbers: Shape) -> Shape:
    """The same as the layers that attend to everything have it."""
    kv_heads = numbers.kv_heads
    if config.flag("attention_k_eq_v") and config.get("num_global_key_value_heads") is not None:
        kv_heads = config.size("num_global_key_value_heads", kind="heads")
    return replace(numbers, head_dim=config.size("global_head_dim", kind="head_dim"), kv_heads=kv_heads)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer = shape(config), "model.layers.{}"
    hidden, layers = numbers.hidden, numbers.layers
    shared = min(layers, config.count("num_kv_shared_layers", kind="layers"))
    width = numbers.intermediate * (2 if config.flag("use_double_wide_mlp") else 1)
    found = [
        *_attentions(config, numbers, layers - shared),
        *gated_mlp(f"{layer}.mlp", hidden, numbers.intermediate, layers - shared),
        *gated_mlp(f"{layer}.mlp", hidden, width, shared),
        *(tensor for name in GEMMA_NORMS for tensor in norm(f"{layer}.{name}", hidden, layers)),
        *(_gemma.own_inputs(config, numbers) if config.count("hidden_size_per_layer_input", kind="hidden") else ()),
        *_experts(numbers),
    ]
    return around(numbers, found)


def _attentions(config: Config, numbers: Shape, own: int) -> Iterator[Tensor]:
    """Attention of all layers; from the ``own``-th on they take keys and values of an earlier one."""
    bias, name = config.flag("attention_bias"), "model.layers.{}.self_attn"
    each = slides(config, numbers.layers)
    for sliding, kind in ((True, numbers), (False, wide(config, numbers))):
        own_keys, all_of_them = each[:own].count(sliding), each.count(sliding)
        values = own_keys if sliding or not config.flag("attention_k_eq_v") else 0
        counts = {"k_proj": own_keys, "v_proj": values}
        for tensor in attention(name, kind, all_of_them, bias=bias, out_bias=bias):
            yield replace(tensor, copies=counts.get(tensor.name.split(".")[-2], all_of_them))
        yield from norm(f"{name}.q_norm", kind.head_dim, all_of_them)
        yield from norm(f"{name}.k_norm", kind.head_dim, own_keys)


def _experts(numbers: Shape) -> list[Tensor]:
    moe, layer, hidden, layers = numbers.moe, "model.layers.{}", numbers.hidden, numbers.layers
    if moe is None:
        return []
    names = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
    return [
        *linear(f"{layer}.router.proj", moe.experts, hidden, layers),
        Tensor(f"{layer}.router.scale", (hidden,), layers, "norm"),
        Tensor(f"{layer}.router.per_expert_scale", (moe.experts,), layers, "norm"),
        *fused_experts(f"{layer}.experts", moe.experts, hidden, moe.intermediate, layers),
        *(tensor for name in names for tensor in norm(f"{layer}.{name}", hidden, layers)),
    ]
