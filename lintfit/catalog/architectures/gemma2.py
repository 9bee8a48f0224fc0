"""Gemma 2: four norms a layer, soft caps on attention scores and logits, every other layer with a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import gemma
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = gemma.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **{key: value for key, value in gemma.DEFAULTS.items() if key != "hidden_act"},
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "final_logit_softcapping": 30.0,
    "attn_logit_softcapping": 50.0,
}
LAYER_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)


def shape(config: Config) -> Shape:
    numbers = replace(decoder_shape(config), activation=config.text("hidden_activation"))
    if numbers.sliding_window and not config.strings("layer_types"):
        return replace(numbers, sliding_layers=(numbers.layers + 1) // 2)
    return numbers


def tensors(config: Config) -> tuple[Tensor, ...]:
    bias = config.flag("attention_bias")
    return decoder(shape(config), Style(qkv_bias=bias, out_bias=bias, layer_norms=LAYER_NORMS))
