"""Apertus: llama with an MLP without a gate, an activation that learns, and norms on the heads."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, plain_mlp
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = KEYS
DEFAULTS = defaults("apertus")
NORMS = ("attention_layernorm", "feedforward_layernorm")


def shape(config: Config) -> Shape:
    return decoder_shape(config, gated=False, qk_norm=True)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, mlp = shape(config), config.flag("attention_bias"), "model.layers.{}.mlp"
    norms = (numbers.head_dim, numbers.head_dim)
    style = DecoderStyle(qkv_bias=bias, out_bias=bias, qk_norm=norms, layer_norms=NORMS)
    width, layers = numbers.intermediate, numbers.layers
    learns = ("alpha_p", "alpha_n") if numbers.activation == "xielu" else ()
    found = [
        *self_attention(numbers, style),
        *plain_mlp(mlp, numbers.hidden, width, layers, up="up_proj", down="down_proj", bias=False),
        *(Tensor(f"{mlp}.act_fn.{name}", (1,), layers, "other") for name in learns),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, found)
