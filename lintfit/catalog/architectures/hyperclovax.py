"""HyperCLOVA X SEED Think: Granite with norms behind attention and MLP as well."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

GRANITE = known("granite")

REQUIRED = KEYS
DEFAULTS = defaults("hyperclovax")
LAYER_NORMS = ("input_layernorm", "post_attention_layernorm")


def shape(config: Config) -> Shape:
    return GRANITE.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    bias = config.flag("attention_bias")
    norms = (*LAYER_NORMS, "post_norm1", "post_norm2") if config.flag("use_post_norm") else LAYER_NORMS
    style = DecoderStyle(qkv_bias=bias, out_bias=bias, mlp_bias=config.flag("mlp_bias"), layer_norms=norms)
    return decoder(shape(config), style)
