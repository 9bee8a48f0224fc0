"""InternLM 3 8B."""

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
    "vocab_size": 128512,
    "intermediate_size": 10240,
    "num_hidden_layers": 48,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "max_position_embeddings": 32768,
}


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return llama.tensors(config)
