"""LLaVA 1.6 (NeXT): LLaVA with a learnt line break between rows of image tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = llava.REQUIRED
DEFAULTS: Mapping[str, Any] = llava.DEFAULTS


def shape(config: Config) -> Shape:
    numbers = llava.shape(config)
    assert numbers.vision is not None
    return replace(numbers, vision=replace(numbers.vision, tokens=None))


def tensors(config: Config) -> tuple[Tensor, ...]:
    newline = Tensor("model.image_newline", (shape(config).hidden,), 1, "other", "vision")
    return (newline, *llava.tensors(config))
