"""StarCoder 2: llama-like attention, a plain MLP, biases and LayerNorm."""

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
    "vocab_size": 49152,
    "hidden_size": 3072,
    "intermediate_size": 12288,
    "num_hidden_layers": 30,
    "num_attention_heads": 24,
    "num_key_value_heads": 2,
    "hidden_act": "gelu_pytorch_tanh",
    "max_position_embeddings": 4096,
    "attention_dropout": 0.0,
    "residual_dropout": 0.0,
    "embedding_dropout": 0.0,
    "use_bias": True,
    "tie_word_embeddings": True,
}


def shape(config: Config) -> Shape:
    return decoder_shape(config, norm="layernorm", gated=False)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("use_bias")
    style = Style(qkv_bias=bias, out_bias=bias, norm_bias=True)
    mlp = "model.layers.{}.mlp"
    layers = [
        *self_attention(numbers, style),
        *plain_mlp(mlp, numbers.hidden, numbers.intermediate, numbers.layers, up="c_fc", down="c_proj", bias=bias),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
