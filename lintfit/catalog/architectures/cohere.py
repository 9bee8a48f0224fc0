"""Command R and Aya 23: attention and MLP in parallel after one norm without shift."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("cohere")


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, norm="layernorm", qk_norm=config.flag("use_qk_norm"))
    return replace(numbers, parallel_residual=True)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, layer = shape(config), config.flag("attention_bias"), "model.layers.{}.self_attn"
    style = DecoderStyle(qkv_bias=bias, out_bias=bias, layer_norms=("input_layernorm",))
    found = decoder(numbers, style)
    if not numbers.qk_norm:
        return found
    return (
        *found,
        Tensor(f"{layer}.q_norm.weight", (numbers.heads, numbers.head_dim), numbers.layers, "norm"),
        Tensor(f"{layer}.k_norm.weight", (numbers.kv_heads, numbers.head_dim), numbers.layers, "norm"),
    )
