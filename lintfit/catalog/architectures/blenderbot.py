"""Blenderbot: PEGASUS with positions that are learned."""

from __future__ import annotations

from lintfit.catalog.architectures import _bart
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = _bart.REQUIRED
DEFAULTS = defaults("blenderbot")


def shape(config: Config) -> Shape:
    return _bart.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return _bart.tensors(config, _bart.Style(offset=0, first=False, last=True))
