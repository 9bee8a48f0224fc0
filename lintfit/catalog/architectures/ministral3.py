"""The text model of Ministral 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import mistral
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = mistral.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **mistral.DEFAULTS,
    "vocab_size": 131072,
    "num_hidden_layers": 34,
    "head_dim": 128,
    "max_position_embeddings": 262144,
    "sliding_window": None,
}


def shape(config: Config) -> Shape:
    return mistral.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return mistral.tensors(config)
