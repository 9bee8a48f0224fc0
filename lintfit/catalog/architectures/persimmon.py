"""Adept's Persimmon: GPT-NeoX's layout, one block after the other, with a norm of queries and keys and squared relu."""

from __future__ import annotations

from lintfit.catalog.architectures import gpt_neox
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, embedding, head, linear, norm, plain_mlp
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = gpt_neox.REQUIRED
DEFAULTS = defaults("persimmon")


def shape(config: Config) -> Shape:
    return decoder_shape(config, norm="layernorm", gated=False, qk_norm=config.flag("qk_layernorm"))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer = shape(config), "model.layers.{}"
    hidden, layers, width, attention = numbers.hidden, numbers.layers, numbers.head_dim, f"{layer}.self_attn"
    normed = layers if numbers.qk_norm else 0
    return (
        *embedding("model.embed_tokens", numbers.vocab, hidden),
        *linear(f"{attention}.query_key_value", 3 * hidden, hidden, layers, bias=True),
        *linear(f"{attention}.dense", hidden, hidden, layers, bias=True),
        *norm(f"{attention}.q_layernorm", width, normed, bias=True),
        *norm(f"{attention}.k_layernorm", width, normed, bias=True),
        *plain_mlp(f"{layer}.mlp", hidden, numbers.intermediate, layers, up="dense_h_to_4h", down="dense_4h_to_h"),
        *norm(f"{layer}.input_layernorm", hidden, layers, bias=True),
        *norm(f"{layer}.post_attention_layernorm", hidden, layers, bias=True),
        *norm("model.final_layernorm", hidden, bias=True, where="final"),
        *head(numbers),
    )
