"""InternLM 7B and 20B, by the code in their repositories: llama with one flag for biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS: Mapping[str, Any] = {
    **{key: value for key, value in llama.DEFAULTS.items() if key not in ("attention_bias", "mlp_bias")},
    "vocab_size": 103168,
    "bias": True,
}


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    bias = config.flag("bias")
    return decoder(shape(config), Style(qkv_bias=bias, out_bias=bias))
