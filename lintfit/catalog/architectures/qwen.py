"""Qwen 1 by the code in its repository; its ``intermediate_size`` is that of gate and up together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, embedding, head, linear, norm
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 151936,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "kv_channels": 128,
    "intermediate_size": 22016,
    "max_position_embeddings": 8192,
    "attn_dropout_prob": 0.0,
    "emb_dropout_prob": 0.0,
    "no_bias": True,
    "tie_word_embeddings": False,
}
CODE = Code(chooses_kernel=False, own_dtype=True)  # modeling_qwen.py makes bf16 layers unless the config says otherwise


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    if numbers.intermediate < 2:
        raise config.error("intermediate_size", "must be at least 2, as gate and up have half of it each")
    head_dim = config.size("kv_channels", kind="head_dim")
    positions = config.count("seq_length", "max_position_embeddings", kind="positions") or None
    return replace(
        numbers,
        head_dim=head_dim,
        rotary_dim=head_dim,
        intermediate=numbers.intermediate // 2,
        max_positions=positions,
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer, bias = shape(config), "transformer.h.{}", not config.flag("no_bias", True)
    hidden, layers, width = numbers.hidden, numbers.layers, numbers.intermediate
    return (
        *embedding("transformer.wte", numbers.vocab, hidden),
        *norm(f"{layer}.ln_1", hidden, layers),
        *linear(f"{layer}.attn.c_attn", 3 * numbers.query, hidden, layers, bias=True),
        *linear(f"{layer}.attn.c_proj", hidden, numbers.query, layers, bias=bias),
        *norm(f"{layer}.ln_2", hidden, layers),
        *linear(f"{layer}.mlp.w1", width, hidden, layers, bias=bias),
        *linear(f"{layer}.mlp.w2", width, hidden, layers, bias=bias),
        *linear(f"{layer}.mlp.c_proj", hidden, width, layers, bias=bias),
        *norm("transformer.ln_f", hidden, where="final"),
        *head(numbers),
    )
