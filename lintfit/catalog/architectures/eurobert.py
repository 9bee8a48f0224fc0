"""EuroBERT: Llama's layers, which see both ways, with a head for masked words."""

from __future__ import annotations

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("eurobert")


def shape(config: Config) -> Shape:
    return llama.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    found = llama.tensors(config)
    if not config.flag("mlp_bias"):
        return found
    return (*found, Tensor("lm_head.bias", (shape(config).vocab,), 1, "bias", "head"))
