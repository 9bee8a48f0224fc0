"""Seed-OSS 36B."""

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
    **llama.DEFAULTS,
    "vocab_size": 155136,
    "intermediate_size": 27648,
    "num_hidden_layers": 64,
    "num_attention_heads": 80,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 524288,
    "attention_bias": True,
    "attention_out_bias": False,
    "attention_dropout": 0.1,
    "residual_dropout": 0.1,
}


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    style = Style(
        qkv_bias=config.flag("attention_bias"),
        out_bias=config.flag("attention_out_bias"),
        mlp_bias=config.flag("mlp_bias"),
    )
    return decoder(shape(config), style)
