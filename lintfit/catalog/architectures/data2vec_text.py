"""data2vec's text model with its masked-language-model head: RoBERTa's tensors under a name of their own."""

from __future__ import annotations

from lintfit.catalog.architectures import bert, roberta
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = bert.REQUIRED
DEFAULTS = defaults("data2vec_text")


def shape(config: Config) -> Shape:
    return bert.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return roberta.tensors(config, "data2vec_text")
