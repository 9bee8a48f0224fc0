"""MPT 7B and 30B: ALiBi, no biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, embedding, head, linear, norm, plain_mlp, plain_shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = ("d_model", "n_heads", "n_layers", "vocab_size")
DEFAULTS: Mapping[str, Any] = {
    "d_model": 2048,
    "n_heads": 16,
    "n_layers": 24,
    "expansion_ratio": 4,
    "max_seq_len": 2048,
    "vocab_size": 50368,
    "resid_pdrop": 0.0,
    "emb_pdrop": 0.0,
    "no_bias": True,
    "tie_word_embeddings": True,
}


def shape(config: Config) -> Shape:
    return plain_shape(
        config,
        hidden="d_model",
        layers="n_layers",
        heads="n_heads",
        intermediate=config.size("expansion_ratio") * config.size("d_model", kind="hidden"),
        activation="gelu",
        max_positions=config.count("max_seq_len", kind="positions") or None,
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers, block = numbers.hidden, numbers.layers, "transformer.blocks.{}"
    return (
        *embedding("transformer.wte", numbers.vocab, hidden),
        *norm(f"{block}.norm_1", hidden, layers),
        *linear(f"{block}.attn.Wqkv", 3 * hidden, hidden, layers),
        *linear(f"{block}.attn.out_proj", hidden, hidden, layers),
        *norm(f"{block}.norm_2", hidden, layers),
        *plain_mlp(f"{block}.ffn", hidden, numbers.intermediate, layers, up="up_proj", down="down_proj", bias=False),
        *norm("transformer.norm_f", hidden, where="final"),
        *head(numbers),
    )
