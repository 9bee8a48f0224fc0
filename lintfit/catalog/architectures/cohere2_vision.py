"""Command A Vision: Aya Vision's parts without a norm in front of the projector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import aya_vision
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = aya_vision.REQUIRED
VISION: Mapping[str, Any] = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1152,
    "intermediate_size": 3072,
    "image_size": 512,
    "num_hidden_layers": 27,
    "num_attention_heads": 12,
}
"""transformers ``Cohere2VisionConfig``: what a model without ``vision_config`` has."""
DEFAULTS = defaults("cohere2_vision", vision_config=VISION)


def language(config: Config) -> tuple[str, Config]:
    return aya_vision.language(config)


def shape(config: Config) -> Shape:
    return aya_vision.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return aya_vision.without_norm(config)
