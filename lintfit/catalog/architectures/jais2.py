"""Jais 2: llama's attention, squared ReLU without a gate, LayerNorm, biases everywhere but in the head."""

from __future__ import annotations

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, plain_mlp
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("jais2")


def shape(config: Config) -> Shape:
    return decoder_shape(config, norm="layernorm", gated=False)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, mlp_bias = shape(config), config.flag("attention_bias"), config.flag("mlp_bias")
    style, mlp, hidden = Style(qkv_bias=bias, out_bias=bias, norm_bias=True), "model.layers.{}.mlp", numbers.hidden
    layers = [
        *self_attention(numbers, style),
        *plain_mlp(mlp, hidden, numbers.intermediate, numbers.layers, up="up_proj", down="down_proj", bias=mlp_bias),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
