"""StarCoder 2: llama-like attention, a plain MLP, biases and LayerNorm."""

from __future__ import annotations

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, plain_mlp
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("starcoder2")


def shape(config: Config) -> Shape:
    return decoder_shape(config, norm="layernorm", gated=False)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("use_bias")
    style = Style(qkv_bias=bias, out_bias=bias, norm_bias=True)
    mlp = "model.layers.{}.mlp"
    layers = [
        *self_attention(numbers, style),
        *plain_mlp(mlp, numbers.hidden, numbers.intermediate, numbers.layers, up="c_fc", down="c_proj", bias=bias),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
