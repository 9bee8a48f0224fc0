"""dots.llm1: DeepSeek's experts behind plain attention with norms on the heads."""

from __future__ import annotations

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = (*KEYS, "n_routed_experts", "n_shared_experts", "moe_intermediate_size", "num_experts_per_tok")
DEFAULTS = defaults("dots1", sliding_window=None)
"""``Dots1Config`` states a window, and layers within it only behind as many as its largest model has."""


def shape(config: Config) -> Shape:
    return replace(decoder_shape(config, qk_norm=True), moe=deepseek_v3.moe_of(config))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("attention_bias")
    style = DecoderStyle(qkv_bias=bias, out_bias=bias, qk_norm=(numbers.head_dim, numbers.head_dim))
    layers = [*self_attention(numbers, style), *deepseek_v3.mlps(numbers), *layer_norms(numbers, style)]
    return around(numbers, style, layers)
