"""GLM-4-0414: GLM with norms before and after attention and MLP."""

from __future__ import annotations

from lintfit.catalog.architectures import glm
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = glm.REQUIRED
DEFAULTS = defaults("glm4")
LAYER_NORMS = ("input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm")


def shape(config: Config) -> Shape:
    return glm.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return glm.with_norms(config, LAYER_NORMS)
