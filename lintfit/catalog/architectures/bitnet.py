"""BitNet b1.58 as it trains, in half precision: llama with norms in front of both projections back to the stream."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, norm
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

LLAMA = known("llama")

REQUIRED = KEYS
DEFAULTS = defaults("bitnet")


def shape(config: Config) -> Shape:
    return LLAMA.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, layer = shape(config), config.flag("attention_bias"), "model.layers.{}"
    return (
        *decoder(numbers, DecoderStyle(qkv_bias=bias, out_bias=bias)),
        *norm(f"{layer}.self_attn.attn_sub_norm", numbers.hidden, numbers.layers),
        *norm(f"{layer}.mlp.ffn_sub_norm", numbers.intermediate, numbers.layers),
    )
