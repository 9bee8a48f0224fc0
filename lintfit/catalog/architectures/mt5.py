"""mT5 and mT0."""

from __future__ import annotations

from lintfit.catalog.architectures import t5
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = t5.REQUIRED
DEFAULTS = defaults("mt5")
NOTES = t5.NOTES


def shape(config: Config) -> Shape:
    return t5.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return t5.tensors(config)
