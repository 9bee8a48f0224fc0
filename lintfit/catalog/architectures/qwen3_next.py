"""Qwen 3 Next 80B-A3B: three layers of gated delta rule to one of gated attention, routed and shared experts."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._decoder import KEYS, Names
from lintfit.catalog.architectures._experts import NO_MTP, QWEN2
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor


def linear_layers(config: Config) -> list[int]:
    """The numbers of the layers with the gated delta rule: all but every fourth, where ``layer_types`` does not say."""
    kinds = config.strings("layer_types")
    layers = config.size("num_hidden_layers", kind="layers")
    if kinds:
        return [number for number, kind in enumerate(kinds) if kind == "linear_attention"]
    interval = config.size("full_attention_interval", kind="layers")
    return [number for number in range(layers) if (number + 1) % interval]


def mixers(config: Config, numbers: Shape, *, fused: bool = True) -> list[Tensor]:
    """Gated attention in some layers, the gated delta rule in the others; ``fused``: see :func:`delta_rule`."""
    mixed = len(linear_layers(config))
    return [
        *gated_attention(config, numbers, numbers.layers - mixed),
        *delta_rule(config, numbers.hidden, mixed, fused=fused),
    ]


def gated_attention(config: Config, numbers: Shape, copies: int) -> list[Tensor]:
    """Attention whose query projection gives a gate as well."""
    name, bias = "model.layers.{}.self_attn", config.flag("attention_bias")
    return [
        *linear(f"{name}.q_proj", 2 * numbers.query, numbers.hidden, copies, bias=bias),
        *linear(f"{name}.k_proj", numbers.key_value, numbers.hidden, copies, bias=bias),
        *linear(f"{name}.v_proj", numbers.key_value, numbers.hidden, copies, bias=bias),
        *linear(f"{name}.o_proj", numbers.hidden, numbers.query, copies, bias=bias),
        *norm(f"{name}.q_norm", numbers.head_dim, copies),
        *norm(f"{name}.k_norm", numbers.head_dim, copies),
    ]


def delta_rule(config: Config, hidden: int, copies: int, *, fused: bool) -> list[Tensor]:
    """``Qwen3NextGatedDeltaNet``: a short convolution over queries, keys and values, decay and gate for each head.

    ``fused``: the gate is part of the queries' projection, and decay and rate are one; Qwen 3.5 keeps them apart.
    """
    name = "model.layers.{}.linear_attn"
    width = config.size("linear_value_head_dim", kind="head_dim")
    heads = config.size("linear_num_value_heads", kind="heads")
    keys = config.size("linear_num_key_heads", kind="heads") * config.size("linear_key_head_dim", kind="head_dim")
    values, mixed = heads * width, 2 * keys + heads * width
    together = {"in_proj_qkvz": mixed + values, "in_proj_ba": 2 * heads}
    apart = {"in_proj_qkv": mixed, "in_proj_z": values, "in_proj_b": heads, "in_proj_a": heads}
    projections = (together if fused else apart).items()
    return [
        Tensor(f"{name}.conv1d.weight", (mixed, 1, config.size("linear_conv_kernel_dim")), copies, "conv"),
        *(tensor for part, out in projections for tensor in linear(f"{name}.{part}", out, hidden, copies)),
        Tensor(f"{name}.dt_bias", (heads,), copies, "bias"),
        Tensor(f"{name}.A_log", (heads,), copies, "other"),
        *norm(f"{name}.norm", width, copies),
        *linear(f"{name}.out_proj", hidden, values, copies),
    ]


ROW = Plain(
    "Gated delta rule, gated attention and Qwen 2's experts",
    own={"full_attention_interval": 4},
    required=(*KEYS, "num_experts", "moe_intermediate_size"),
    names=Names(order="mixer mlp norms"),
    qk_norm="head",
    mlp_bias=False,
    experts=QWEN2,
    mixer=mixers,
    notes=NO_MTP,
    code=Code(liger=True),
)
