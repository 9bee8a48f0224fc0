"""Falcon 7B, 11B, 40B, 180B and the RefinedWeb models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, embedding, head, head_dim_of, linear, norm, plain_mlp
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor

REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
DEFAULTS = defaults("falcon")
CODE = Code(sdpa_at_first=True, sdpa_leaves_scores=True, layer="FalconDecoderLayer")


def normalised(values: Mapping[str, Any]) -> dict[str, Any]:
    """The first checkpoints have other names, and ``RefinedWeb`` (40B) implies the new decoder."""
    renamed = {"n_embed": "hidden_size", "n_head": "num_attention_heads", "n_layer": "num_hidden_layers"}
    renamed["n_head_kv"] = "num_kv_heads"
    found = {**{new: values[old] for old, new in renamed.items() if old in values}, **values}
    if values.get("model_type") == "RefinedWeb":
        found.setdefault("new_decoder_architecture", True)
    return found


def shape(config: Config) -> Shape:
    hidden = config.size("hidden_size", kind="hidden")
    heads = config.size("num_attention_heads", kind="heads")
    head_dim = head_dim_of(config, "hidden_size", "num_attention_heads")
    if config.flag("new_decoder_architecture"):
        kv_heads = config.size("num_kv_heads", kind="heads", default=heads)
    else:
        kv_heads = 1 if config.flag("multi_query") else heads
    return Shape(
        hidden=hidden,
        layers=config.size("num_hidden_layers", kind="layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=config.size("ffn_hidden_size", kind="intermediate", default=4 * hidden),
        vocab=config.size("vocab_size", kind="vocab"),
        tied=config.flag("tie_word_embeddings"),
        gated=False,
        norm="layernorm",
        activation=config.text("activation"),
        max_positions=config.count("max_position_embeddings", kind="positions") or None,
        rotary_dim=0 if config.flag("alibi") else head_dim,
        parallel_residual=config.flag("parallel_attn") or config.flag("new_decoder_architecture"),
    )


def norm_names(config: Config) -> tuple[str, ...]:
    """The norms of one layer."""
    new = config.flag("new_decoder_architecture")
    if not config.flag("parallel_attn"):
        return ("input_layernorm", "post_attention_layernorm")
    both = config.size("num_ln_in_parallel_attn", default=2 if new else 1) == 2
    return ("ln_attn", "ln_mlp") if both else ("input_layernorm",)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers, layer = numbers.hidden, numbers.layers, "transformer.h.{}"
    bias, fused = config.flag("bias"), numbers.query + 2 * numbers.key_value
    norms = [part for name in norm_names(config) for part in norm(f"{layer}.{name}", hidden, layers, bias=True)]
    up, down = "dense_h_to_4h", "dense_4h_to_h"
    return (
        *embedding("transformer.word_embeddings", numbers.vocab, hidden),
        *linear(f"{layer}.self_attention.query_key_value", fused, hidden, layers, bias=bias),
        *linear(f"{layer}.self_attention.dense", hidden, hidden, layers, bias=bias),
        *plain_mlp(f"{layer}.mlp", hidden, numbers.intermediate, layers, up=up, down=down, bias=bias),
        *norms,
        *norm("transformer.ln_f", hidden, bias=True, where="final"),
        *head(numbers),
    )
