"""MPNet with its masked-language-model head: BERT, with biases of the scores by relative position."""

from __future__ import annotations

from lintfit.catalog.architectures import bert
from lintfit.catalog.architectures._blocks import Shape, embedding, linear, norm
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

REQUIRED = bert.REQUIRED
DEFAULTS = defaults("mpnet")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER)


def shape(config: Config) -> Shape:
    return bert.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "mpnet"
    hidden, layers, layer = numbers.hidden, numbers.layers, f"{name}.encoder.layer.{{}}"
    buckets = config.size("relative_attention_num_buckets")
    found = [
        *embedding(f"{name}.embeddings.word_embeddings", numbers.vocab, hidden),
        *embedding(f"{name}.embeddings.position_embeddings", numbers.max_positions or 0, hidden),
        *norm(f"{name}.embeddings.LayerNorm", hidden, bias=True, where="embedding"),
        Tensor(f"{name}.encoder.relative_attention_bias.weight", (buckets, numbers.heads), 1, "embedding", "other"),
    ]
    for which in ("q", "k", "v", "o"):
        found += linear(f"{layer}.attention.attn.{which}", hidden, hidden, layers, bias=True)
    parts = ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")
    return (
        *found,
        *norm(f"{layer}.attention.LayerNorm", hidden, layers, bias=True),
        *linear(f"{layer}.intermediate.dense", numbers.intermediate, hidden, layers, bias=True),
        *linear(f"{layer}.output.dense", hidden, numbers.intermediate, layers, bias=True),
        *norm(f"{layer}.output.LayerNorm", hidden, layers, bias=True),
        *bert.masked_head(numbers, *parts),
    )
