"""ELECTRA's discriminator or generator, with the generator's masked-language-model head."""

from __future__ import annotations

from lintfit.catalog.architectures import bert
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since

REQUIRED = bert.REQUIRED
DEFAULTS = defaults("electra")
CODE = Code(sdpa=since(5, 0), flash_attention_2=since(5, 0))


def shape(config: Config) -> Shape:
    return bert.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, width = shape(config), config.size("embedding_size", kind="hidden")
    found = bert.encoder(config, "electra", width)
    if width != numbers.hidden:
        found += linear("electra.embeddings_project", numbers.hidden, width, bias=True, where="embedding")
    found += norm("generator_predictions.LayerNorm", width, bias=True, where="head")
    found += linear("generator_predictions.dense", width, numbers.hidden, bias=True, where="head")
    found.append(Tensor("generator_lm_head.bias", (numbers.vocab,), 1, "bias", "head"))
    if not numbers.tied:
        found += linear("generator_lm_head", numbers.vocab, width, role="lm_head", where="head")
    return tuple(found)
