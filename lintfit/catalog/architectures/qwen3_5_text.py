"""The language model of Qwen 3.5 and 3.6: three layers of gated delta rule to one of gated attention, no experts."""

from __future__ import annotations

from lintfit.catalog.architectures import qwen3_next
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, gated_mlp
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor

REQUIRED = KEYS
DEFAULTS = defaults("qwen3_5_text", full_attention_interval=4)
CODE = Code(liger=True)
NOTES = qwen3_next.NOTES


def shape(config: Config) -> Shape:
    return decoder_shape(config, qk_norm=True)


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """What mixes the tokens of the layers."""
    linear = len(qwen3_next.linear_layers(config))
    return [
        *qwen3_next.gated_attention(config, numbers, numbers.layers - linear),
        *qwen3_next.delta_rule(config, numbers.hidden, linear, fused=False),
    ]


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style = shape(config), DecoderStyle()
    layers = [
        *mixers(config, numbers),
        *gated_mlp("model.layers.{}.mlp", numbers.hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
