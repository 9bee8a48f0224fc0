"""OLMo 3: OLMo 2 with sliding windows in three of four layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _sliding, olmo2
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = olmo2.REQUIRED
DEFAULTS = defaults("olmo3")
FULL_EVERY = 4
"""transformers ``Olmo3Config``: without ``layer_types`` every fourth layer attends to everything."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``Olmo3Config.__post_init__``."""
    return _sliding.named(given, given.get("num_hidden_layers", DEFAULTS.get("num_hidden_layers")), FULL_EVERY)


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    if numbers.sliding_window and not config.strings("layer_types"):
        return replace(numbers, sliding_layers=numbers.layers - numbers.layers // FULL_EVERY)
    return numbers


def tensors(config: Config) -> tuple[Tensor, ...]:
    return olmo2.tensors(config)
