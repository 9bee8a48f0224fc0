"""Blenderbot: PEGASUS with positions that are learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _bart
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = _bart.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **_bart.DEFAULTS,
    "vocab_size": 8008,
    "max_position_embeddings": 128,
    "encoder_layers": 2,
    "encoder_ffn_dim": 10240,
    "encoder_attention_heads": 32,
    "decoder_layers": 24,
    "decoder_ffn_dim": 10240,
    "decoder_attention_heads": 32,
    "d_model": 2560,
}


def shape(config: Config) -> Shape:
    return _bart.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return _bart.tensors(config, _bart.Style(offset=0, first=False, last=True))
