"""nanochat: norms without weights, squared ReLU without a gate, soft-capped logits."""

from __future__ import annotations

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, plain_mlp
from lintfit.catalog.architectures._decoder import Style, around, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("nanochat")


def shape(config: Config) -> Shape:
    return decoder_shape(config, gated=False)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, mlp = shape(config), config.flag("attention_bias"), "model.layers.{}.mlp"
    style, wide = Style(qkv_bias=bias, out_bias=bias, norm_weight=False), numbers.intermediate
    layers = [
        *self_attention(numbers, style),
        *plain_mlp(mlp, numbers.hidden, wide, numbers.layers, up="fc1", down="fc2", bias=False),
    ]
    return around(numbers, style, layers)
