"""DiffLlama: Llama with differential attention, whose two halves of values are weighed by four vectors a layer."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = KEYS
DEFAULTS = defaults("diffllama")
LAMBDAS = ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    if numbers.kv_heads % 2:
        raise config.error("num_key_value_heads", "must be even")
    return numbers


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("attention_bias")
    lambdas = [
        Tensor(f"model.layers.{{}}.self_attn.{name}", (numbers.head_dim,), numbers.layers, "other") for name in LAMBDAS
    ]
    return (*decoder(numbers, DecoderStyle(qkv_bias=bias, out_bias=bias)), *lambdas)
