"""BART and what is built like it: an encoder and a decoder that attends to it, with LayerNorm and biases."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import (
    Shape,
    embedding,
    linear,
    norm,
    plain_shape,
)
from lintfit.catalog.architectures._fairseq import layers_of
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import frozen, replace

REQUIRED = ("d_model", "encoder_ffn_dim", "encoder_layers", "encoder_attention_heads", "vocab_size")

LAYERS = {"encoder": "encoder_layers", "decoder": "decoder_layers"}
WIDTHS = {"encoder": "encoder_ffn_dim", "decoder": "decoder_ffn_dim"}


@frozen
class BartStyle:
    """Where a type differs from BART.

    ``offset``: rows that a table of positions has more than positions; None where that is a buffer. ``first``: whether
    the embeddings are normed, ``last``: whether a half ends with a norm.
    """

    offset: int | None
    first: bool
    last: bool


def shape(config: Config) -> Shape:
    """The numbers of both halves together, by those of the encoder."""
    numbers = plain_shape(
        config,
        hidden="d_model",
        layers="encoder_layers",
        heads="encoder_attention_heads",
        intermediate="encoder_ffn_dim",
        activation="activation_function",
    )
    config.size("decoder_attention_heads", kind="heads")
    return replace(numbers, layers=numbers.layers + config.size("decoder_layers", kind="layers"))


def half(config: Config, numbers: Shape, name: str, style: BartStyle) -> list[Tensor]:
    """The ``encoder``, or the ``decoder`` with its attention to the encoder, without its embedding."""
    hidden, layers = numbers.hidden, config.size(LAYERS[name], kind="layers")
    module, layer = f"model.{name}", f"model.{name}.layers.{{}}"
    width = config.size(WIDTHS[name], kind="intermediate")
    parts = ("self_attn", "encoder_attn") if name == "decoder" else ("self_attn",)
    found: list[Tensor] = []
    if style.offset is not None:
        found += embedding(f"{module}.embed_positions", (numbers.max_positions or 0) + style.offset, hidden)
    found += layers_of(layer, numbers, layers, width, parts)
    if style.first:
        found += norm(f"{module}.layernorm_embedding", hidden, bias=True, where="embedding")
    if style.last:
        found += norm(f"{module}.layer_norm", hidden, bias=True, where="final")
    return found


def tensors(config: Config, offset: int | None = 2, first: bool = True, last: bool = False) -> tuple[Tensor, ...]:
    """Both halves, which share the embedding whatever ``tie_word_embeddings`` says of the head."""
    numbers, style = shape(config), BartStyle(offset, first, last)
    found = embedding("model.shared", numbers.vocab, numbers.hidden)
    if not numbers.tied:
        found += embedding("model.encoder.embed_tokens", numbers.vocab, numbers.hidden)
        found += embedding("model.decoder.embed_tokens", numbers.vocab, numbers.hidden)
        found += linear("lm_head", numbers.vocab, numbers.hidden, role="lm_head", where="head")
    return (*found, *half(config, numbers, "encoder", style), *half(config, numbers, "decoder", style))
