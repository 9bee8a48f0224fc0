"""DeepSeek V2 and V2 Lite, DeepSeek Coder V2."""

from __future__ import annotations

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._decoder import DecoderStyle, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor

REQUIRED = deepseek_v3.REQUIRED
DEFAULTS = defaults("deepseek_v2")
CODE = Code(liger=True)


def shape(config: Config) -> Shape:
    return deepseek_v3.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style = shape(config), DecoderStyle()
    mlps = deepseek_v3.mlps(numbers, bias=config.flag("mlp_bias"))
    return around(numbers, style, [*deepseek_v3.latent_attention(config, numbers), *mlps, *layer_norms(numbers, style)])
