"""Nemotron 4 and Minitron: squared ReLU without a gate, LayerNorm with 1 added to its scale."""

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
    "vocab_size": 256000,
    "hidden_size": 6144,
    "intermediate_size": 24576,
    "num_hidden_layers": 32,
    "num_attention_heads": 48,
    "hidden_act": "relu2",
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "partial_rotary_factor": 0.5,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
}


def shape(config: Config) -> Shape:
    return decoder_shape(config, norm="layernorm", gated=False)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, mlp_bias = shape(config), config.flag("attention_bias"), config.flag("mlp_bias")
    style = Style(qkv_bias=bias, out_bias=bias, norm_bias=True)
    mlp, up, down = "model.layers.{}.mlp", "up_proj", "down_proj"
    layers = [
        *self_attention(numbers, style),
        *plain_mlp(mlp, numbers.hidden, numbers.intermediate, numbers.layers, up=up, down=down, bias=mlp_bias),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
