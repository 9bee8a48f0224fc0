"""BitNet b1.58 as it trains, in half precision: llama with norms in front of both projections back to the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, norm
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **{key: value for key, value in llama.DEFAULTS.items() if key != "mlp_bias"},
    "vocab_size": 128256,
    "hidden_size": 2560,
    "intermediate_size": 6912,
    "num_hidden_layers": 30,
    "num_attention_heads": 20,
    "num_key_value_heads": 5,
    "hidden_act": "relu2",
}


def shape(config: Config) -> Shape:
    return llama.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, layer = shape(config), config.flag("attention_bias"), "model.layers.{}"
    return (
        *decoder(numbers, Style(qkv_bias=bias, out_bias=bias)),
        *norm(f"{layer}.self_attn.attn_sub_norm", numbers.hidden, numbers.layers),
        *norm(f"{layer}.mlp.ffn_sub_norm", numbers.intermediate, numbers.layers),
    )
