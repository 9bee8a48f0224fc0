"""MiniCPM 3 4B: latent attention, dense."""

from __future__ import annotations

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape, gated_mlp
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = (*KEYS, "kv_lora_rank")
DEFAULTS = defaults("minicpm3", v_head_dim=64)


def shape(config: Config) -> Shape:
    return deepseek_v3.latent_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style, bias = shape(config), DecoderStyle(), config.flag("mlp_bias")
    layers = [
        *deepseek_v3.latent_attention(config, numbers),
        *gated_mlp("model.layers.{}.mlp", numbers.hidden, numbers.intermediate, numbers.layers, bias=bias),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
