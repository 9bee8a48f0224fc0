"""BERT with its masked-language-model head."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, embedding, linear, norm, plain_shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since

REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
DEFAULTS = defaults("bert")
CODE = Code(sdpa=since(4, 41), flash_attention_2=since(5, 0), layer="BertLayer")


def shape(config: Config) -> Shape:
    return plain_shape(
        config,
        hidden="hidden_size",
        layers="num_hidden_layers",
        heads="num_attention_heads",
        intermediate=config.size("intermediate_size", kind="intermediate"),
        activation=config.text("hidden_act"),
        max_positions=config.size("max_position_embeddings", kind="positions"),
    )


def encoder(config: Config, name: str, width: int | None = None) -> list[Tensor]:
    """Embeddings, ``width`` elements wide where that is not the layers' width, and layers."""
    numbers = shape(config)
    width = width or numbers.hidden
    hidden, layers, layer = numbers.hidden, numbers.layers, f"{name}.encoder.layer.{{}}"
    return [
        *embedding(f"{name}.embeddings.word_embeddings", numbers.vocab, width),
        *embedding(f"{name}.embeddings.position_embeddings", numbers.max_positions or 0, width),
        *embedding(f"{name}.embeddings.token_type_embeddings", config.size("type_vocab_size"), width),
        *norm(f"{name}.embeddings.LayerNorm", width, bias=True, where="embedding"),
        *linear(f"{layer}.attention.self.query", hidden, hidden, layers, bias=True),
        *linear(f"{layer}.attention.self.key", hidden, hidden, layers, bias=True),
        *linear(f"{layer}.attention.self.value", hidden, hidden, layers, bias=True),
        *linear(f"{layer}.attention.output.dense", hidden, hidden, layers, bias=True),
        *norm(f"{layer}.attention.output.LayerNorm", hidden, layers, bias=True),
        *linear(f"{layer}.intermediate.dense", numbers.intermediate, hidden, layers, bias=True),
        *linear(f"{layer}.output.dense", hidden, numbers.intermediate, layers, bias=True),
        *norm(f"{layer}.output.LayerNorm", hidden, layers, bias=True),
    ]


def masked_head(
    numbers: Shape,
    dense: str,
    layer_norm: str,
    decoder: str,
    bias: str,
    width: int | None = None,
    *,
    biased: bool = True,
) -> list[Tensor]:
    """The transform before the vocabulary, to the embeddings' ``width`` where that is another, and the projection where
    it is not the embedding's, which may be ``biased`` under a name of its own beside ``bias``."""
    width = width or numbers.hidden
    found = [
        Tensor(bias, (numbers.vocab,), 1, "bias", "head"),
        *linear(dense, width, numbers.hidden, bias=True, where="head"),
        *norm(layer_norm, width, bias=True, where="head"),
    ]
    if numbers.tied:
        return found
    own = biased and bias != f"{decoder}.bias"
    return [*found, *linear(decoder, numbers.vocab, width, bias=own, role="lm_head", where="head")]


def predictions(numbers: Shape, width: int | None = None) -> list[Tensor]:
    """The head under BERT's own names; ``width``: see :func:`masked_head`."""
    name = "cls.predictions"
    parts = (f"{name}.transform.dense", f"{name}.transform.LayerNorm", f"{name}.decoder", f"{name}.bias")
    return masked_head(numbers, *parts, width)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return (*encoder(config, "bert"), *predictions(shape(config)))
