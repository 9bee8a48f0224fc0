"""umT5: mT5 with relative positions in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import t5
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = t5.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **t5.DEFAULTS,
    "vocab_size": 250112,
    "d_ff": 1024,
    "num_layers": 8,
    "num_heads": 6,
    "feed_forward_proj": "gated-gelu",
}
NOTES = t5.NOTES


def shape(config: Config) -> Shape:
    return t5.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return t5.tensors(config, everywhere=True)
