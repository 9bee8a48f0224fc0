"""Llama 1 to 3, and the many models published with its class: Yi, Vicuna, DeepSeek LLM and coder, SmolLM, TinyLlama."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
DEFAULTS = defaults("llama")


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    bias = config.flag("attention_bias")
    return decoder(shape(config), Style(qkv_bias=bias, out_bias=bias, mlp_bias=config.flag("mlp_bias")))
