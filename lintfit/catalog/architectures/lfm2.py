"""LFM 2 and 2.5 of Liquid AI: short convolutions with gates, attention in between, a gated MLP in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, linear, norm
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

NAMES = Names(
    up=("feed_forward.w1", "feed_forward.w3"),
    down="feed_forward.w2",
    norms=("operator_norm", "ffn_norm"),
    final="model.embedding_norm",
)


def normalised(given: Mapping[str, Any]) -> dict[str, Any]:
    """``Lfm2Config.__post_init__``: older configs say ``tie_embedding``, ``block_ff_dim`` and ``full_attn_idxs``."""
    values = dict(given)
    for old, new in (("tie_embedding", "tie_word_embeddings"), ("block_ff_dim", "intermediate_size")):
        if old in values:
            values[new] = values[old]
    indices, layers = values.get("full_attn_idxs"), values.get("num_hidden_layers")
    stated = values.get("layer_types") is not None
    if not stated and isinstance(indices, list) and isinstance(layers, int) and layers <= LARGEST["layers"]:
        values["layer_types"] = ["full_attention" if index in indices else "conv" for index in range(layers)]
    return values


def shape(config: Config) -> Shape:
    return replace(decoder_shape(config, qk_norm=True), intermediate=_intermediate(config))


def _intermediate(config: Config) -> int:
    """``Lfm2MLP``: two thirds of what the config says, in steps of ``block_multiple_of``."""
    stated = config.size("intermediate_size", kind="intermediate")
    if not config.flag("block_auto_adjust_ff_dim"):
        return stated
    step = config.size("block_multiple_of")
    width = int((config.number("block_ffn_dim_multiplier") or 1.0) * int(2 * stated / 3))
    if width < 1:
        raise config.error("intermediate_size", "too small for two thirds of it (block_auto_adjust_ff_dim)")
    return -(-width // step) * step


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """Attention in some layers, short convolutions with gates in the others."""
    convolved, name = config.strings("layer_types").count("conv"), "model.layers.{}.self_attn"
    attended = numbers.layers - convolved
    return [
        *attention(name, numbers, attended, out="out_proj"),
        *norm(f"{name}.q_layernorm", numbers.head_dim, attended),
        *norm(f"{name}.k_layernorm", numbers.head_dim, attended),
        *convolutions(config, numbers.hidden, convolved),
    ]


def convolutions(config: Config, hidden: int, copies: int) -> list[Tensor]:
    """Short convolutions with gates."""
    name, bias = "model.layers.{}.conv", config.flag("conv_bias")
    return [
        *linear(f"{name}.in_proj", 3 * hidden, hidden, copies, bias=bias),
        *linear(f"{name}.out_proj", hidden, hidden, copies, bias=bias),
        Tensor(f"{name}.conv.weight", (hidden, 1, config.size("conv_L_cache")), copies, "conv"),
        *([Tensor(f"{name}.conv.bias", (hidden,), copies, "bias")] if bias else []),
    ]


ROW = Plain(
    "Short convolutions and attention",
    own={"hidden_act": "silu"},
    required=("hidden_size", "num_hidden_layers", "num_attention_heads"),
    normalised=normalised,
    numbers=shape,
    names=NAMES,
    mlp_bias=False,
    mixer=mixers,
)
