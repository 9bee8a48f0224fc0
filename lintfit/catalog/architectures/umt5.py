"""umT5: mT5 with relative positions in every layer."""

from __future__ import annotations

from lintfit.catalog.architectures import mt5, t5
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED, DEFAULTS, NOTES = mt5.REQUIRED, mt5.DEFAULTS, mt5.NOTES


def shape(config: Config) -> Shape:
    return t5.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return t5.tensors(config, everywhere=True)
