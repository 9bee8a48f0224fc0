"""EuroBERT: Llama's layers, which see both ways, with a head for masked words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **llama.DEFAULTS,
    "vocab_size": 128256,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 8192,
}


def shape(config: Config) -> Shape:
    return llama.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    found = llama.tensors(config)
    if not config.flag("mlp_bias"):
        return found
    return (*found, Tensor("lm_head.bias", (shape(config).vocab,), 1, "bias", "head"))
