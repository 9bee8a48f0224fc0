"""Jais 2: llama's attention, squared ReLU without a gate, LayerNorm, biases everywhere but in the head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, plain_mlp
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **llama.DEFAULTS,
    "vocab_size": 150272,
    "hidden_size": 3328,
    "intermediate_size": 26624,
    "num_attention_heads": 26,
    "hidden_act": "relu2",
    "max_position_embeddings": 8192,
    "attention_bias": True,
    "mlp_bias": True,
}


def shape(config: Config) -> Shape:
    return decoder_shape(config, norm="layernorm", gated=False)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, mlp_bias = shape(config), config.flag("attention_bias"), config.flag("mlp_bias")
    style, mlp, hidden = Style(qkv_bias=bias, out_bias=bias, norm_bias=True), "model.layers.{}.mlp", numbers.hidden
    layers = [
        *self_attention(numbers, style),
        *plain_mlp(mlp, hidden, numbers.intermediate, numbers.layers, up="up_proj", down="down_proj", bias=mlp_bias),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
