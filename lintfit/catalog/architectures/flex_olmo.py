"""FlexOlmo: OLMoE's experts in OLMo 2's layers."""

from __future__ import annotations

from lintfit.catalog.architectures import olmoe
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = olmoe.REQUIRED
DEFAULTS = defaults("flex_olmo")


def shape(config: Config) -> Shape:
    return olmoe.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return olmoe.with_norms(config, ("post_attention_layernorm", "post_feedforward_layernorm"))
