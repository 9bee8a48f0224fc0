"""ESM-2 and ESM-1b, models of proteins, with their masked-language-model head."""

from __future__ import annotations

from lintfit.catalog.architectures._bert import LM_HEAD
from lintfit.catalog.architectures._blocks import Shape, embedding, linear, masked_head, norm, plain_shape
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("esm", vocab_size=30522, hidden_act="gelu", type_vocab_size=2, emb_layer_norm_before=False)
CODE = Code(sdpa=since(4, 56), flash_attention_2=since(4, 52))


def shape(config: Config) -> Shape:
    numbers = replace(plain_shape(config), activation="gelu")
    return replace(numbers, rotary_dim=numbers.head_dim) if _turns(config) else numbers


def _turns(config: Config) -> bool:
    return config.text("position_embedding_type") == "rotary"


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "esm"
    hidden, layers, layer = numbers.hidden, numbers.layers, f"{name}.encoder.layer.{{}}"
    found = embedding(f"{name}.embeddings.word_embeddings", numbers.vocab, hidden)
    if config.flag("emb_layer_norm_before"):
        found += norm(f"{name}.embeddings.layer_norm", hidden, bias=True, where="embedding")
    if not _turns(config):
        found += embedding(f"{name}.embeddings.position_embeddings", numbers.max_positions or 0, hidden)
    for which in ("self.query", "self.key", "self.value", "output.dense"):
        found += linear(f"{layer}.attention.{which}", hidden, hidden, layers, bias=True)
    contacts = f"{name}.contact_head.regression"
    return (
        *found,
        *norm(f"{layer}.attention.LayerNorm", hidden, layers, bias=True),
        *linear(f"{layer}.intermediate.dense", numbers.intermediate, hidden, layers, bias=True),
        *linear(f"{layer}.output.dense", hidden, numbers.intermediate, layers, bias=True),
        *norm(f"{layer}.LayerNorm", hidden, layers, bias=True),
        *norm(f"{name}.encoder.emb_layer_norm_after", hidden, bias=True, where="final"),
        Tensor(f"{contacts}.weight", (1, layers * numbers.heads), 1, "linear", "other"),
        Tensor(f"{contacts}.bias", (1,), 1, "bias", "other"),
        *masked_head(LM_HEAD, numbers, biased=False),
    )
