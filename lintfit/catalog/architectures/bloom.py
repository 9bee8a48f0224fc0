"""BLOOM and BLOOMZ: ALiBi, a norm after the embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, embedding, head, linear, norm, plain_mlp, plain_shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

REQUIRED = ("n_layer", "vocab_size")
DEFAULTS = defaults("bloom")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER, layer="BloomBlock")


def normalised(values: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoints' own configs say ``n_embed`` and ``num_attention_heads``."""
    renamed = {"n_embed": "hidden_size", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"}
    return {**{new: values[old] for old, new in renamed.items() if old in values}, **values}


def shape(config: Config) -> Shape:
    return plain_shape(
        config,
        hidden="hidden_size",
        layers="n_layer",
        heads="n_head",
        intermediate=4 * config.size("hidden_size", kind="hidden"),
        activation="gelu",
        max_positions=config.count("seq_length", kind="positions") or None,
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers, layer = numbers.hidden, numbers.layers, "transformer.h.{}"
    return (
        *embedding("transformer.word_embeddings", numbers.vocab, hidden),
        *norm("transformer.word_embeddings_layernorm", hidden, bias=True, where="embedding"),
        *norm(f"{layer}.input_layernorm", hidden, layers, bias=True),
        *linear(f"{layer}.self_attention.query_key_value", 3 * hidden, hidden, layers, bias=True),
        *linear(f"{layer}.self_attention.dense", hidden, hidden, layers, bias=True),
        *norm(f"{layer}.post_attention_layernorm", hidden, layers, bias=True),
        *plain_mlp(f"{layer}.mlp", hidden, numbers.intermediate, layers, up="dense_h_to_4h", down="dense_4h_to_h"),
        *norm("transformer.ln_f", hidden, bias=True, where="final"),
        *head(numbers),
    )
