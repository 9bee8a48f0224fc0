"""RoBERTa and XLM-RoBERTa with their masked-language-model head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import bert
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = bert.REQUIRED
DEFAULTS: Mapping[str, Any] = {**bert.DEFAULTS, "vocab_size": 50265}


def shape(config: Config) -> Shape:
    return bert.shape(config)


def tensors(config: Config, name: str = "roberta") -> tuple[Tensor, ...]:
    parts = ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")
    return (*bert.encoder(config, name), *bert.masked_head(bert.shape(config), *parts))
