"""ALBERT with its masked-language-model head: BERT, of which all layers are one, behind narrower embeddings."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, embedding, linear, masked_head, norm, plain_shape
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since
from lintfit.frozen import replace

REQUIRED = (*KEYS, "embedding_size")
DEFAULTS = defaults("albert")
CODE = Code(sdpa=since(4, 45), flash_attention_2=since(5, 0))


def shape(config: Config) -> Shape:
    """Layers as often as they run, whatever they share."""
    numbers = plain_shape(config)
    groups = config.size("num_hidden_groups", kind="layers")
    if groups > numbers.layers:
        raise config.error("num_hidden_groups", f"must be no more than num_hidden_layers ({numbers.layers})")
    layers = numbers.layers * config.size("inner_group_num", kind="layers")
    if layers > LARGEST["layers"]:
        raise config.error("inner_group_num", f"must leave no more than {LARGEST['layers']} layers in all")
    config.size("embedding_size", kind="hidden")
    return replace(numbers, layers=layers)


def block(config: Config, index: int) -> int:
    """Which of the blocks of parameters a layer runs with."""
    groups, inner = config.size("num_hidden_groups"), config.size("inner_group_num")
    group = int(index // inner / (config.size("num_hidden_layers") / groups))
    return group * inner + index % inner


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "albert"
    width, hidden = config.size("embedding_size", kind="hidden"), numbers.hidden
    blocks = config.size("num_hidden_groups") * config.size("inner_group_num")
    layer = f"{name}.encoder.albert_layer_groups.{{}}.albert_layers.0"
    found = [
        *embedding(f"{name}.embeddings.word_embeddings", numbers.vocab, width),
        *embedding(f"{name}.embeddings.position_embeddings", numbers.max_positions or 0, width),
        *embedding(f"{name}.embeddings.token_type_embeddings", config.size("type_vocab_size"), width),
        *norm(f"{name}.embeddings.LayerNorm", width, bias=True, where="embedding"),
        *linear(f"{name}.encoder.embedding_hidden_mapping_in", hidden, width, bias=True, where="embedding"),
    ]
    for which in ("query", "key", "value", "dense"):
        found += linear(f"{layer}.attention.{which}", hidden, hidden, blocks, bias=True)
    parts = ("predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias")
    return (
        *found,
        *norm(f"{layer}.attention.LayerNorm", hidden, blocks, bias=True),
        *linear(f"{layer}.ffn", numbers.intermediate, hidden, blocks, bias=True),
        *linear(f"{layer}.ffn_output", hidden, numbers.intermediate, blocks, bias=True),
        *norm(f"{layer}.full_layer_layer_norm", hidden, blocks, bias=True),
        *masked_head(parts, numbers, width),
    )
