"""BioGPT: OPT's layers with learned positions, LayerNorm in front of both blocks, a tied head of another name."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import (
    Shape,
    embedding,
    head,
    norm,
    plain_shape,
)
from lintfit.catalog.architectures._fairseq import layers_of
from lintfit.catalog.architectures.opt import POSITION_OFFSET
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
DEFAULTS = defaults("biogpt")


def shape(config: Config) -> Shape:
    return plain_shape(
        config,
        hidden="hidden_size",
        layers="num_hidden_layers",
        heads="num_attention_heads",
        intermediate=config.size("intermediate_size", kind="intermediate"),
        activation=config.text("hidden_act", default="gelu"),
        max_positions=config.size("max_position_embeddings", kind="positions"),
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden = numbers.hidden
    return (
        *embedding("biogpt.embed_tokens", numbers.vocab, hidden),
        *embedding("biogpt.embed_positions", (numbers.max_positions or 0) + POSITION_OFFSET, hidden),
        *layers_of("biogpt.layers.{}", numbers, numbers.layers, numbers.intermediate),
        *norm("biogpt.layer_norm", hidden, bias=True, where="final"),
        *head(numbers, "output_projection"),
    )
