"""InternLM 2 and 2.5, by the code in their repositories."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, embedding, head, linear, norm
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor

REQUIRED, DEFAULTS = KEYS, known("internlm").defaults
CODE = Code(chooses_kernel=False)


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer, bias = shape(config), "model.layers.{}", config.flag("bias")
    hidden, layers, width = numbers.hidden, numbers.layers, numbers.intermediate
    return (
        *embedding("model.tok_embeddings", numbers.vocab, hidden),
        *linear(f"{layer}.attention.wqkv", numbers.query + 2 * numbers.key_value, hidden, layers, bias=bias),
        *linear(f"{layer}.attention.wo", hidden, numbers.query, layers, bias=bias),
        *linear(f"{layer}.feed_forward.w1", width, hidden, layers),
        *linear(f"{layer}.feed_forward.w3", width, hidden, layers),
        *linear(f"{layer}.feed_forward.w2", hidden, width, layers),
        *norm(f"{layer}.attention_norm", hidden, layers),
        *norm(f"{layer}.ffn_norm", hidden, layers),
        *norm("model.norm", hidden, where="final"),
        *head(numbers, "output"),
    )
