"""Youtu-LLM: DeepSeek's latent attention and a dense MLP in every layer."""

from __future__ import annotations

from lintfit.catalog.architectures import minicpm3
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = minicpm3.REQUIRED
DEFAULTS = defaults("youtu")


def shape(config: Config) -> Shape:
    return minicpm3.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return minicpm3.tensors(config)
