"""LFM 3 of Liquid AI: short convolutions, attention within windows and to everything, norms around both blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, linear, norm
from lintfit.catalog.architectures._layer_kinds import FULL, SLIDING, counted, listed
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.architectures.lfm2 import NAMES, convolutions
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``Lfm3Config.__post_init__``: of four layers one attends to everything, and but for the first one in a window."""
    layers, kinds = given.get("num_hidden_layers"), {2: FULL, 0: SLIDING}
    if not counted(layers):
        return given
    return listed(given, [kinds.get(index % 4, "conv") if index else "conv" for index in range(layers)])


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    return replace(numbers, rotary_dim=numbers.head_dim)


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """Attention in some layers, short convolutions in the others."""
    convolved, bias = config.strings("layer_types").count("conv"), config.flag("attention_bias")
    name, attended = "model.layers.{}.self_attn", numbers.layers - convolved
    return [
        *attention(name, numbers, attended, bias=bias, out_bias=bias),
        *norm(f"{name}.q_norm", numbers.head_dim, attended),
        *norm(f"{name}.k_norm", numbers.head_dim, attended),
        *convolutions(config, numbers.hidden, convolved),
    ]


def more(config: Config, numbers: Shape) -> list[Tensor]:
    """Gates of attention, and norms behind both blocks, where the config asks for them."""
    layer, hidden, found = "model.layers.{}", numbers.hidden, []
    if config.flag("use_attention_gate"):
        attended = numbers.layers - config.strings("layer_types").count("conv")
        found += linear(f"{layer}.self_attn.g_proj", numbers.heads, hidden, attended)
    for name in ("post_operator_norm", "post_ffn_norm") if config.flag("use_sandwich_norm") else ():
        found += norm(f"{layer}.{name}", hidden, numbers.layers)
    return found


ROW = Plain(
    "Short convolutions and two kinds of attention",
    own={"hidden_act": "silu"},
    required=("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    normalised=normalised,
    numbers=shape,
    names=replace(NAMES, order="mixer mlp norms more"),
    mlp_bias=False,
    mixer=mixers,
    more=(more,),
)
