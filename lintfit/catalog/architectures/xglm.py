"""XGLM: LayerNorm in front of both blocks, sinusoidal positions that are no parameters, a tied head."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import (
    Shape,
    embedding,
    head,
    norm,
    plain_shape,
)
from lintfit.catalog.architectures._fairseq import layers_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

REQUIRED = ("d_model", "ffn_dim", "num_layers", "attention_heads", "vocab_size")
POSITION_OFFSET = 2
"""Rows that the table of positions has beyond these (transformers ``XGLMSinusoidalPositionalEmbedding``)."""
DEFAULTS = defaults("xglm")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER)


def shape(config: Config) -> Shape:
    return plain_shape(
        config,
        hidden="d_model",
        layers="num_layers",
        heads="attention_heads",
        intermediate=config.size("ffn_dim", kind="intermediate"),
        activation=config.text("activation_function", default="gelu"),
        max_positions=config.size("max_position_embeddings", kind="positions"),
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden = numbers.hidden
    blocks = ("self_attn", "encoder_attn") if config.flag("add_cross_attention") else ("self_attn",)
    return (
        *embedding("model.embed_tokens", numbers.vocab, hidden),
        *layers_of("model.layers.{}", numbers, numbers.layers, numbers.intermediate, blocks),
        *norm("model.layer_norm", hidden, bias=True, where="final"),
        *head(numbers),
    )
