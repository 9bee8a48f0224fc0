"""A.X K1: DeepSeek V3's latent attention and experts, with a norm behind these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3, glm4_moe_lite
from lintfit.catalog.architectures._blocks import Shape, norm
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = deepseek_v3.REQUIRED
DEFAULTS = defaults("axk1", first_k_dense_replace=1)
NOTES = deepseek_v3.NOTES


def normalised(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """``mlp_layer_types`` says which layers route, and without it ``first_k_dense_replace``."""
    return glm4_moe_lite.normalised(values) if values.get("mlp_layer_types") is not None else values


def shape(config: Config) -> Shape:
    return deepseek_v3.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    assert numbers.moe is not None
    behind = norm("model.layers.{}.mlp.post_mlp_layernorm", numbers.hidden, numbers.moe.layers)
    return (*deepseek_v3.tensors(config), *behind)
