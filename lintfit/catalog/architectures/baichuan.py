"""Baichuan 7B, 13B and 2, by the code in their repositories: one projection for query, key and value."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, gated_mlp, linear
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("llama", vocab_size=64000, max_position_embeddings=4096)
"""``configuration_baichuan.py``."""
CODE = Code(chooses_kernel=False)
ALIBI_FROM_HIDDEN = 5120
"""The 13B models have ALiBi, the 7B models rotary embedding (``modeling_baichuan.py`` of either)."""


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    positions = config.count("max_position_embeddings", "model_max_length", kind="positions") or None
    rotary = 0 if numbers.hidden >= ALIBI_FROM_HIDDEN else numbers.head_dim
    return replace(numbers, max_positions=positions, rotary_dim=rotary)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style, layer = shape(config), DecoderStyle(), "model.layers.{}"
    hidden = numbers.hidden
    layers = [
        *linear(f"{layer}.self_attn.W_pack", 3 * hidden, hidden, numbers.layers),
        *linear(f"{layer}.self_attn.o_proj", hidden, hidden, numbers.layers),
        *gated_mlp(f"{layer}.mlp", hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
