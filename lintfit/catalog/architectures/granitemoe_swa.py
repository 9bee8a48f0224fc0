"""Granite MoE Swash: Granite 3 MoE, with a shared MLP or none, and Granite Swash's attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import granite_swa, granitemoeshared
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

REQUIRED = granitemoeshared.REQUIRED
DEFAULTS = defaults("granitemoe_swa")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER, flash_by_another_kernel=True)


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``GraniteMoeSWAConfig.__post_init__``: every fourth layer attends in full, the first among them."""
    return granite_swa.with_layer_types(given, DEFAULTS["num_hidden_layers"])


def shape(config: Config) -> Shape:
    return granitemoeshared.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return (*granitemoeshared.tensors(config), granite_swa.sinks(shape(config)))
