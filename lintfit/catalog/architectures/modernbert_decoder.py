"""ModernBERT's decoder (Ettin): its layers with separate queries, keys and values, and a head for the next word."""

from __future__ import annotations

from lintfit.catalog.architectures import modernbert
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = modernbert.REQUIRED
DEFAULTS = defaults("modernbert_decoder")
normalised = modernbert.normalised


def shape(config: Config) -> Shape:
    return modernbert.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return modernbert.tensors(config, joined=False, head="lm_head")
