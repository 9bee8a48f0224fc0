"""FlexOlmo: OLMoE's experts in OLMo 2's layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import olmoe
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = olmoe.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **{key: value for key, value in olmoe.DEFAULTS.items() if key != "clip_qkv"},
    "vocab_size": 100352,
    "max_position_embeddings": 4096,
    "num_experts_per_tok": 5,
    "num_experts": 7,
}


def shape(config: Config) -> Shape:
    return olmoe.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return olmoe.with_norms(config, ("post_attention_layernorm", "post_feedforward_layernorm"))
