"""The text model of Ministral 3."""

from __future__ import annotations

from lintfit.catalog.architectures import mistral
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = mistral.REQUIRED
DEFAULTS = defaults("ministral3")


def shape(config: Config) -> Shape:
    return mistral.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return mistral.tensors(config)
