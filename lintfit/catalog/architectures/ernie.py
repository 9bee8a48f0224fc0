"""ERNIE 1.0 to 3.0 with their masked-language-model head: BERT's tensors, and embeddings of tasks."""

from __future__ import annotations

from lintfit.catalog.architectures import bert
from lintfit.catalog.architectures._blocks import Shape, embedding
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since

REQUIRED = bert.REQUIRED
DEFAULTS = defaults("ernie")
CODE = Code(sdpa=since(5, 0), flash_attention_2=since(5, 0))


def shape(config: Config) -> Shape:
    return bert.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    found = [*bert.encoder(config, "ernie"), *bert.predictions(shape(config))]
    if config.flag("use_task_id"):
        found += embedding(
            "ernie.embeddings.task_type_embeddings", config.size("task_type_vocab_size"), shape(config).hidden
        )
    return tuple(found)
