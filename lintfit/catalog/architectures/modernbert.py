"""ModernBERT with its masked-language-model head: rotary, a gated MLP, and windows in two layers of three."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, embedding, linear, norm, plain_shape
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
DEFAULTS = defaults("modernbert")
EVERY = 3
"""One of so many layers attends to everything, from the first on (``global_attn_every_n_layers``)."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``ModernBertConfig.__post_init__``: which layers have a window, where the config does not list them."""
    layers, every = given.get("num_hidden_layers"), given.get("global_attn_every_n_layers", EVERY)
    if given.get("layer_types") is not None or not isinstance(layers, int) or not isinstance(every, int) or every < 1:
        return given
    types = ["sliding_attention" if index % every else "full_attention" for index in range(min(layers, _MOST))]
    return {**given, "layer_types": types}


_MOST = LARGEST["layers"]


def shape(config: Config) -> Shape:
    numbers = plain_shape(
        config,
        hidden="hidden_size",
        layers="num_hidden_layers",
        heads="num_attention_heads",
        intermediate=config.size("intermediate_size", kind="intermediate"),
        activation=config.text("hidden_activation"),
        max_positions=config.size("max_position_embeddings", kind="positions"),
    )
    window = config.size("local_attention", kind="positions") // 2
    sliding = config.strings("layer_types").count("sliding_attention")
    return replace(
        numbers,
        gated=True,
        rotary_dim=numbers.head_dim,
        sliding_window=window if sliding else None,
        sliding_layers=sliding,
    )


def tensors(config: Config, *, joined: bool = True, head: str = "head") -> tuple[Tensor, ...]:
    """``joined``: whether queries, keys and values are one product; ``head``: what transforms its input."""
    numbers, bias = shape(config), config.flag("norm_bias")
    hidden, layers, layer = numbers.hidden, numbers.layers, "model.layers.{}"
    attention_bias, mlp_bias = config.flag("attention_bias"), config.flag("mlp_bias")
    found = [
        *embedding("model.embeddings.tok_embeddings", numbers.vocab, hidden),
        *norm("model.embeddings.norm", hidden, bias=bias, where="embedding"),
        *norm(f"{layer}.attn_norm", hidden, layers - 1, bias=bias),  # the first layer has none
        *(
            linear(f"{layer}.attn.Wqkv", 3 * hidden, hidden, layers, bias=attention_bias)
            if joined
            else [
                tensor
                for which in ("q_proj", "k_proj", "v_proj")
                for tensor in linear(f"{layer}.attn.{which}", hidden, hidden, layers, bias=attention_bias)
            ]
        ),
        *linear(f"{layer}.attn.Wo", hidden, hidden, layers, bias=attention_bias),
        *norm(f"{layer}.mlp_norm", hidden, layers, bias=bias),
        *linear(f"{layer}.mlp.Wi", 2 * numbers.intermediate, hidden, layers, bias=mlp_bias),
        *linear(f"{layer}.mlp.Wo", hidden, numbers.intermediate, layers, bias=mlp_bias),
        *norm("model.final_norm", hidden, bias=bias, where="final"),
        *linear(f"{head}.dense", hidden, hidden, bias=config.flag("classifier_bias"), where="head"),
        *norm(f"{head}.norm", hidden, bias=bias, where="head"),
    ]
    decoder = linear("decoder", numbers.vocab, hidden, bias=config.flag("decoder_bias"), role="lm_head", where="head")
    return (*found, *(decoder[1:] if numbers.tied else decoder))
