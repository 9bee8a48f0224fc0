"""Granite 3 MoE with a shared MLP beside the routed experts."""

from __future__ import annotations

from lintfit.catalog.architectures import granitemoe
from lintfit.catalog.architectures._blocks import Shape, linear
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = granitemoe.REQUIRED
DEFAULTS = defaults("granitemoeshared")


def shape(config: Config) -> Shape:
    numbers = granitemoe.shape(config)
    assert numbers.moe is not None
    shared = config.count("shared_intermediate_size", kind="intermediate")
    return replace(numbers, moe=replace(numbers.moe, shared_intermediate=shared))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "model.layers.{}.shared_mlp"
    assert numbers.moe is not None
    shared = numbers.moe.shared_intermediate
    if not shared:
        return granitemoe.tensors(config)
    return (
        *granitemoe.tensors(config),
        *linear(f"{name}.input_linear", 2 * shared, numbers.hidden, numbers.layers),
        *linear(f"{name}.output_linear", numbers.hidden, shared, numbers.layers),
    )
