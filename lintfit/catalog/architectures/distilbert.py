"""DistilBERT with its masked-language-model head."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, embedding, linear, norm, plain_mlp, plain_shape
from lintfit.catalog.architectures.bert import masked_head
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since

REQUIRED = ("dim", "hidden_dim", "n_layers", "n_heads", "vocab_size")
DEFAULTS = defaults("distilbert")
CODE = Code(sdpa=since(4, 46), flash_attention_2=since(4, 39))


def shape(config: Config) -> Shape:
    return plain_shape(
        config,
        hidden="dim",
        layers="n_layers",
        heads="n_heads",
        intermediate=config.size("hidden_dim", kind="intermediate"),
        activation=config.text("activation"),
        max_positions=config.size("max_position_embeddings", kind="positions"),
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "distilbert"
    hidden, layers, layer = numbers.hidden, numbers.layers, f"{name}.transformer.layer.{{}}"
    found = [
        *embedding(f"{name}.embeddings.word_embeddings", numbers.vocab, hidden),
        *embedding(f"{name}.embeddings.position_embeddings", numbers.max_positions or 0, hidden),
        *norm(f"{name}.embeddings.LayerNorm", hidden, bias=True, where="embedding"),
    ]
    for which in ("q_lin", "k_lin", "v_lin", "out_lin"):
        found += linear(f"{layer}.attention.{which}", hidden, hidden, layers, bias=True)
    parts = ("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias")
    return (
        *found,
        *norm(f"{layer}.sa_layer_norm", hidden, layers, bias=True),
        *plain_mlp(f"{layer}.ffn", hidden, numbers.intermediate, layers, up="lin1", down="lin2"),
        *norm(f"{layer}.output_layer_norm", hidden, layers, bias=True),
        *masked_head(numbers, *parts),
    )
