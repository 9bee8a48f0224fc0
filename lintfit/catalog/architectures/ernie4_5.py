"""ERNIE 4.5, dense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 103424,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 18,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "hidden_act": "silu",
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "use_bias": False,
}


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    bias = config.flag("use_bias")
    return decoder(shape(config), Style(qkv_bias=bias, out_bias=bias, mlp_bias=bias))
