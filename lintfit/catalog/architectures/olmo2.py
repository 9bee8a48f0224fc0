"""OLMo 2: norms after attention and MLP, and over all heads of queries and keys."""

from __future__ import annotations

from lintfit.catalog.architectures import olmo
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = olmo.REQUIRED
DEFAULTS = defaults("olmo2")


def shape(config: Config) -> Shape:
    return decoder_shape(config, qk_norm=True)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("attention_bias")
    norms = ("post_attention_layernorm", "post_feedforward_layernorm")
    qk_norm = (numbers.query, numbers.key_value)
    return decoder(numbers, Style(qkv_bias=bias, out_bias=bias, layer_norms=norms, qk_norm=qk_norm))
