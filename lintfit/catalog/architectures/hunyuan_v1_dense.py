"""Hunyuan dense: llama with norms on the heads of queries and keys."""

from __future__ import annotations

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, gated_mlp, norm
from lintfit.catalog.architectures._decoder import Style, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("hunyuan_v1_dense")


def shape(config: Config) -> Shape:
    return decoder_shape(config, qk_norm=True)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style, bias = shape(config), Style(), config.flag("attention_bias")
    name, width, layers = "model.layers.{}", numbers.head_dim, numbers.layers
    found = [
        *attention(f"{name}.self_attn", numbers, layers, bias=bias, out_bias=bias),
        *norm(f"{name}.self_attn.query_layernorm", width, layers),
        *norm(f"{name}.self_attn.key_layernorm", width, layers),
        *gated_mlp(f"{name}.mlp", numbers.hidden, numbers.intermediate, layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, found)
