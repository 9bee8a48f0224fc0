"""The pre-norm decoder with llama's parameter names, which many families share with small differences."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, attention, embedding, gated_mlp, head, linear, norm
from lintfit.catalog.facts import Tensor
from lintfit.frozen import frozen

KEYS = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
"""Keys in llama's words that a config must state itself."""

LAYER_NORMS = ("input_layernorm", "post_attention_layernorm")

GEMMA_NORMS = (*LAYER_NORMS, "pre_feedforward_layernorm", "post_feedforward_layernorm")
"""Gemma's since its second generation, in front of both blocks and behind them."""


@frozen
class DecoderStyle:
    """Where a family differs from llama.

    ``layer_norms`` are the per-layer norms of hidden size, ``qk_norm`` the sizes of the norms on queries and keys
    (None for none), ``qk_names`` what they are called. ``prefix`` is the
    decoder's name, ``head_name`` the output projection's.
    """

    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    norm_bias: bool = False
    norm_weight: bool = True
    layer_norms: tuple[str, ...] = LAYER_NORMS
    qk_norm: tuple[int, int] | None = None
    qk_names: tuple[str, str] = ("q_norm", "k_norm")
    prefix: str = "model"
    head_name: str = "lm_head"


def layer_norms(shape: Shape, style: DecoderStyle) -> list[Tensor]:
    """The norms of all layers, those on queries and keys included."""
    layer = f"{style.prefix}.layers.{{}}"
    found: list[Tensor] = []
    if style.qk_norm:
        for name, size in zip(style.qk_names, style.qk_norm, strict=True):
            found += norm(f"{layer}.self_attn.{name}", size, shape.layers)
    if style.norm_weight:
        for name in style.layer_norms:
            found += norm(f"{layer}.{name}", shape.hidden, shape.layers, bias=style.norm_bias)
    return found


def around(shape: Shape, style: DecoderStyle, layers: list[Tensor]) -> tuple[Tensor, ...]:
    """The layers between the embedding and the final norm and head."""
    final = norm(f"{style.prefix}.norm", shape.hidden, bias=style.norm_bias, where="final") if style.norm_weight else []
    return (
        *embedding(f"{style.prefix}.embed_tokens", shape.vocab, shape.hidden),
        *layers,
        *final,
        *head(shape, style.head_name),
    )


def self_attention(shape: Shape, style: DecoderStyle) -> list[Tensor]:
    """The attention projections of all layers."""
    name = f"{style.prefix}.layers.{{}}.self_attn"
    return attention(name, shape, shape.layers, bias=style.qkv_bias, out_bias=style.out_bias)


def decoder(shape: Shape, style: DecoderStyle) -> tuple[Tensor, ...]:
    """A whole dense decoder with a gated MLP."""
    mlp = gated_mlp(
        f"{style.prefix}.layers.{{}}.mlp", shape.hidden, shape.intermediate, shape.layers, bias=style.mlp_bias
    )
    return around(shape, style, [*self_attention(shape, style), *mlp, *layer_norms(shape, style)])


def fused_decoder(shape: Shape, style: DecoderStyle) -> tuple[Tensor, ...]:
    """A dense decoder whose query, key and value projections are one, and whose gate and up projections are one."""
    layer = f"{style.prefix}.layers.{{}}"
    layers = [
        *linear(f"{layer}.self_attn.o_proj", shape.hidden, shape.query, shape.layers),
        *linear(f"{layer}.self_attn.qkv_proj", shape.query + 2 * shape.key_value, shape.hidden, shape.layers),
        *linear(f"{layer}.mlp.gate_up_proj", 2 * shape.intermediate, shape.hidden, shape.layers),
        *linear(f"{layer}.mlp.down_proj", shape.hidden, shape.intermediate, shape.layers),
    ]
    return around(shape, style, [*layers, *layer_norms(shape, style)])
