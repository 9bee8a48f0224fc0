"""LFM 3 of Liquid AI: short convolutions, attention within windows and to everything, norms around both blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import (
    Shape,
    attention,
    decoder_shape,
    embedding,
    head,
    linear,
    norm,
)
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
DEFAULTS = defaults("lfm3", hidden_act="silu")


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``Lfm3Config.__post_init__``: of four layers one attends to everything, and but for the first one in a window."""
    layers = given.get("num_hidden_layers")
    if given.get("layer_types") is not None or not isinstance(layers, int) or not 0 < layers <= LARGEST["layers"]:
        return given
    kinds = {2: "full_attention", 0: "sliding_attention"}
    return {**given, "layer_types": [kinds.get(index % 4, "conv") if index else "conv" for index in range(layers)]}


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    return replace(numbers, rotary_dim=numbers.head_dim)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name, bias = shape(config), "model.layers.{}", config.flag("conv_bias")
    hidden, layers, attention_bias = numbers.hidden, numbers.layers, config.flag("attention_bias")
    convolved = config.strings("layer_types").count("conv")
    attended, conv, mlp = layers - convolved, f"{name}.conv", f"{name}.feed_forward"
    found = [
        *attention(f"{name}.self_attn", numbers, attended, bias=attention_bias, out_bias=attention_bias),
        *norm(f"{name}.self_attn.q_norm", numbers.head_dim, attended),
        *norm(f"{name}.self_attn.k_norm", numbers.head_dim, attended),
        *linear(f"{conv}.in_proj", 3 * hidden, hidden, convolved, bias=bias),
        *linear(f"{conv}.out_proj", hidden, hidden, convolved, bias=bias),
        Tensor(f"{conv}.conv.weight", (hidden, 1, config.size("conv_L_cache")), convolved, "conv"),
        *([Tensor(f"{conv}.conv.bias", (hidden,), convolved, "bias")] if bias else []),
        *linear(f"{mlp}.w1", numbers.intermediate, hidden, layers),
        *linear(f"{mlp}.w3", numbers.intermediate, hidden, layers),
        *linear(f"{mlp}.w2", hidden, numbers.intermediate, layers),
        *norm(f"{name}.operator_norm", hidden, layers),
        *norm(f"{name}.ffn_norm", hidden, layers),
    ]
    if config.flag("use_attention_gate"):
        found += linear(f"{name}.self_attn.g_proj", numbers.heads, hidden, attended)
    if config.flag("use_sandwich_norm"):
        found += norm(f"{name}.post_operator_norm", hidden, layers) + norm(f"{name}.post_ffn_norm", hidden, layers)
    return (
        *embedding("model.embed_tokens", numbers.vocab, hidden),
        *found,
        *norm("model.embedding_norm", hidden, where="final"),
        *head(numbers),
    )
