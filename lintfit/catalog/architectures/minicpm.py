"""MiniCPM 1B, 2B and 4, by the code in their repositories: llama's shape with scaled residuals."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, linear, router
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, decoder, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, MoE, Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("llama", tie_word_embeddings=True, num_experts=0, num_experts_per_tok=2)
"""``configuration_minicpm.py``."""
CODE = Code(chooses_kernel=False)


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    experts = config.count("num_experts", kind="experts")
    if not experts:
        return numbers
    top_k = config.size("num_experts_per_tok", kind="experts")
    return replace(numbers, moe=MoE(experts, top_k, numbers.intermediate, numbers.layers))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias = shape(config), config.flag("attention_bias")
    style = DecoderStyle(qkv_bias=bias, out_bias=bias)
    if numbers.moe is None:
        return decoder(numbers, style)
    mlp, hidden, width = "model.layers.{}.mlp", numbers.hidden, numbers.intermediate
    copies = numbers.layers * numbers.moe.experts
    layers = [
        *self_attention(numbers, style),
        *router(f"{mlp}.gate", numbers.moe.experts, hidden, numbers.layers),
        *linear(f"{mlp}.experts.{{}}.w1", width, hidden, copies),
        *linear(f"{mlp}.experts.{{}}.w2", hidden, width, copies),
        *linear(f"{mlp}.experts.{{}}.w3", width, hidden, copies),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
