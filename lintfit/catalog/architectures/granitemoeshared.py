"""Granite 3 MoE with a shared MLP beside the routed experts."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, linear
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

GRANITEMOE = known("granitemoe")

REQUIRED = (*KEYS, "num_local_experts")
DEFAULTS = defaults("granitemoeshared")


def shape(config: Config) -> Shape:
    numbers = GRANITEMOE.shape(config)
    assert numbers.moe is not None
    shared = config.count("shared_intermediate_size", kind="intermediate")
    return replace(numbers, moe=replace(numbers.moe, shared_intermediate=shared))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "model.layers.{}.shared_mlp"
    assert numbers.moe is not None
    shared = numbers.moe.shared_intermediate
    if not shared:
        return GRANITEMOE.tensors(config)
    return (
        *GRANITEMOE.tensors(config),
        *linear(f"{name}.input_linear", 2 * shared, numbers.hidden, numbers.layers),
        *linear(f"{name}.output_linear", numbers.hidden, shared, numbers.layers),
    )
