"""LFM 2 and 2.5 of Liquid AI: short convolutions with gates, attention in between, a gated MLP in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, embedding, head, linear, norm
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads")
DEFAULTS = defaults("lfm2", hidden_act="silu")


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


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    return with_mlps(config, numbers, numbers.layers, [])


def with_mlps(config: Config, numbers: Shape, dense: int, experts: list[Tensor]) -> tuple[Tensor, ...]:
    """All tensors, with an MLP in ``dense`` layers and experts in the others."""
    name, bias = "model.layers.{}", config.flag("conv_bias")
    hidden, layers = numbers.hidden, numbers.layers
    convolved = sum(kind == "conv" for kind in config.strings("layer_types"))
    attended, conv = layers - convolved, f"{name}.conv"
    found = [
        *attention(f"{name}.self_attn", numbers, attended, out="out_proj"),
        *norm(f"{name}.self_attn.q_layernorm", numbers.head_dim, attended),
        *norm(f"{name}.self_attn.k_layernorm", numbers.head_dim, attended),
        *linear(f"{conv}.in_proj", 3 * hidden, hidden, convolved, bias=bias),
        *linear(f"{conv}.out_proj", hidden, hidden, convolved, bias=bias),
        Tensor(f"{conv}.conv.weight", (hidden, 1, config.size("conv_L_cache")), convolved, "conv"),
        *([Tensor(f"{conv}.conv.bias", (hidden,), convolved, "bias")] if bias else []),
        *linear(f"{name}.feed_forward.w1", numbers.intermediate, hidden, dense),
        *linear(f"{name}.feed_forward.w3", numbers.intermediate, hidden, dense),
        *linear(f"{name}.feed_forward.w2", hidden, numbers.intermediate, dense),
        *experts,
        *norm(f"{name}.operator_norm", hidden, layers),
        *norm(f"{name}.ffn_norm", hidden, layers),
    ]
    return (
        *embedding("model.embed_tokens", numbers.vocab, hidden),
        *found,
        *norm("model.embedding_norm", hidden, where="final"),
        *head(numbers),
    )
