"""GLM 4.5, 4.5 Air and 4.6."""

from __future__ import annotations

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = (*KEYS, "n_routed_experts", "moe_intermediate_size")
DEFAULTS = defaults("glm4_moe")
NOTES = ("no multi-token-prediction layers (transformers does not load those of a checkpoint)",)


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=config.flag("use_qk_norm"))
    return replace(numbers, moe=deepseek_v3.moe_of(config))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    head = numbers.head_dim
    style = DecoderStyle(qkv_bias=config.flag("attention_bias"), qk_norm=(head, head) if numbers.qk_norm else None)
    layers = [
        *self_attention(numbers, style),
        *deepseek_v3.mlps(numbers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
