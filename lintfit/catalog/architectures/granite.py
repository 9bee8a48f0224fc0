"""Granite 3 and 4 dense: llama with multipliers on embeddings, residuals, attention and logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **llama.DEFAULTS,
    "embedding_multiplier": 1.0,
    "logits_scaling": 1.0,
    "residual_multiplier": 1.0,
    "attention_multiplier": 1.0,
}


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return llama.tensors(config)
