"""EXAONE 4: norms after attention and MLP, and per head on queries and keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _sliding, llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("exaone4")


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``Exaone4Config.__post_init__``."""
    slides = given.get("sliding_window", DEFAULTS["sliding_window"]) is not None
    every = given.get("sliding_window_pattern", DEFAULTS["sliding_window_pattern"]) if slides else None
    return _sliding.named(given, given.get("num_hidden_layers"), every)


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    if numbers.sliding_window and not config.strings("layer_types"):
        every = config.count("sliding_window_pattern", kind="layers")
        return replace(numbers, sliding_layers=numbers.layers - numbers.layers // every if every else 0)
    return numbers


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, norms = shape(config), ("post_attention_layernorm", "post_feedforward_layernorm")
    return decoder(numbers, Style(layer_norms=norms, qk_norm=(numbers.head_dim, numbers.head_dim)))
