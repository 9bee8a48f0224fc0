"""SmolLM 3 3B: every fourth layer without rotary embedding."""

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
    "vocab_size": 128256,
    "hidden_size": 2048,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "max_position_embeddings": 32768,
    "use_sliding_window": False,
    "tie_word_embeddings": True,
}


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return llama.tensors(config)
