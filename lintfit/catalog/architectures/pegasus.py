"""PEGASUS: BART with positions by sines, and norms at the end of each half, not on its embeddings."""

from __future__ import annotations

from lintfit.catalog.architectures import _bart
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED, DEFAULTS = _bart.REQUIRED, _bart.DEFAULTS


def shape(config: Config) -> Shape:
    return _bart.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return _bart.tensors(config, _bart.Style(offset=0, first=False, last=True))
