"""data2vec's text model with its masked-language-model head: RoBERTa's tensors under a name of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import bert, roberta
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = bert.REQUIRED
DEFAULTS: Mapping[str, Any] = bert.DEFAULTS


def shape(config: Config) -> Shape:
    return bert.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return roberta.tensors(config, "data2vec_text")
