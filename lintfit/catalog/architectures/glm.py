"""GLM-4 9B in transformers' own class: fused gate and up projections, half of each head rotated."""

from __future__ import annotations

from lintfit.catalog.architectures import llama
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, linear
from lintfit.catalog.architectures._decoder import Style, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llama.REQUIRED
DEFAULTS = defaults("glm")


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return with_norms(config, ("input_layernorm", "post_attention_layernorm"))


def with_norms(config: Config, norms: tuple[str, ...]) -> tuple[Tensor, ...]:
    """All tensors, with the layer norms that this generation of GLM has."""
    numbers, mlp = shape(config), "model.layers.{}.mlp"
    style = Style(qkv_bias=config.flag("attention_bias"), layer_norms=norms)
    layers = [
        *self_attention(numbers, style),
        *linear(f"{mlp}.gate_up_proj", 2 * numbers.intermediate, numbers.hidden, numbers.layers),
        *linear(f"{mlp}.down_proj", numbers.hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
