"""Mistral 4's text model: DeepSeek's latent attention and experts, scored by a softmax."""

from __future__ import annotations

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = deepseek_v3.REQUIRED
DEFAULTS = defaults("mistral4")


def shape(config: Config) -> Shape:
    return deepseek_v3.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return deepseek_v3.tensors(config)
