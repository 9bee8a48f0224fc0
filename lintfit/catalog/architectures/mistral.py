"""Mistral 7B, Nemo, Small and Large, Codestral, Ministral, Zephyr."""

from __future__ import annotations

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("mistral")


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return decoder(shape(config), Style())
