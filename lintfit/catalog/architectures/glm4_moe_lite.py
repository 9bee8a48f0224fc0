"""GLM 4.7 Flash: DeepSeek's latent attention and experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = deepseek_v3.REQUIRED
DEFAULTS = defaults("glm4_moe_lite", first_k_dense_replace=1)
NOTES = deepseek_v3.NOTES


def normalised(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """``mlp_layer_types`` says which layers route; the dense ones come first."""
    types = values.get("mlp_layer_types")
    if not isinstance(types, list) or "sparse" not in types:
        return {key: value for key, value in values.items() if key != "first_k_dense_replace"}
    return {**values, "first_k_dense_replace": types.index("sparse")}


def shape(config: Config) -> Shape:
    return deepseek_v3.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return deepseek_v3.tensors(config)
