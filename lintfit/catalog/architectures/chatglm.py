"""ChatGLM 6B, ChatGLM 2 and 3, GLM-4 9B, by the code in their repositories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, embedding, head, head_dim_of, linear, norm, plain_mlp
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor

REQUIRED = ("hidden_size", "num_layers", "num_attention_heads")
DEFAULTS: Mapping[str, Any] = {
    "num_layers": 28,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "rmsnorm": True,
    "multi_query_attention": False,
    "add_bias_linear": False,
    "add_qkv_bias": False,
    "post_layer_norm": True,
}
CODE = Code(chooses_kernel=False, own_dtype=True)  # modeling_chatglm.py: config.torch_dtype


def is_first(config: Config) -> bool:
    """Whether this is ChatGLM 1, which has LayerNorm, GELU and a two-dimensional rotary embedding."""
    return "position_encoding_2d" in config or "inner_hidden_size" in config


def normalised(values: Mapping[str, Any]) -> dict[str, Any]:
    """The configs name vocabulary and MLP width differently; ChatGLM 1 ties by default, the later ones do not."""
    found = dict(values)
    for old, new in (("padded_vocab_size", "vocab_size"), ("ffn_hidden_size", "intermediate_size")):
        if values.get(old) is not None:
            found[new] = values[old]
    if "inner_hidden_size" in values:
        found["intermediate_size"] = values["inner_hidden_size"]
    found.setdefault("tie_word_embeddings", "position_encoding_2d" in values or "inner_hidden_size" in values)
    return found


def shape(config: Config) -> Shape:
    first = is_first(config)
    heads = config.size("num_attention_heads", kind="heads")
    grouped = config.flag("multi_query_attention")
    head_dim = head_dim_of(config, "hidden_size", "num_attention_heads", "kv_channels")
    return Shape(
        hidden=config.size("hidden_size", kind="hidden"),
        layers=config.size("num_layers", kind="layers"),
        heads=heads,
        kv_heads=config.size("multi_query_group_num", kind="heads") if grouped else heads,
        head_dim=head_dim,
        intermediate=config.size("intermediate_size", kind="intermediate"),
        vocab=config.size("vocab_size", kind="vocab"),
        tied=config.flag("tie_word_embeddings"),
        gated=not first,
        norm="rmsnorm" if config.flag("rmsnorm") and not first else "layernorm",
        activation="gelu" if first else "silu",
        max_positions=config.count("seq_length", "max_sequence_length", kind="positions") or None,
        rotary_dim=head_dim if first else head_dim // 2,
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    return first_generation(numbers) if is_first(config) else later_generations(config, numbers)


def first_generation(numbers: Shape) -> tuple[Tensor, ...]:
    """ChatGLM 6B."""
    hidden, layers, layer = numbers.hidden, numbers.layers, "transformer.layers.{}"
    up, down = "dense_h_to_4h", "dense_4h_to_h"
    return (
        *embedding("transformer.word_embeddings", numbers.vocab, hidden),
        *norm(f"{layer}.input_layernorm", hidden, layers, bias=True),
        *linear(f"{layer}.attention.query_key_value", 3 * hidden, hidden, layers, bias=True),
        *linear(f"{layer}.attention.dense", hidden, hidden, layers, bias=True),
        *norm(f"{layer}.post_attention_layernorm", hidden, layers, bias=True),
        *plain_mlp(f"{layer}.mlp", hidden, numbers.intermediate, layers, up=up, down=down),
        *norm("transformer.final_layernorm", hidden, bias=True, where="final"),
        *head(numbers),
    )


def later_generations(config: Config, numbers: Shape) -> tuple[Tensor, ...]:
    """ChatGLM 2 and 3, GLM-4 9B."""
    hidden, layers, layer = numbers.hidden, numbers.layers, "transformer.encoder.layers.{}"
    bias = config.flag("add_bias_linear")
    qkv_bias, fused = bias or config.flag("add_qkv_bias"), numbers.query + 2 * numbers.key_value
    shift = numbers.norm == "layernorm"
    final = norm("transformer.encoder.final_layernorm", hidden, bias=shift, where="final")
    return (
        *embedding("transformer.embedding.word_embeddings", numbers.vocab, hidden),
        *norm(f"{layer}.input_layernorm", hidden, layers, bias=shift),
        *linear(f"{layer}.self_attention.query_key_value", fused, hidden, layers, bias=qkv_bias),
        *linear(f"{layer}.self_attention.dense", hidden, numbers.query, layers, bias=bias),
        *norm(f"{layer}.post_attention_layernorm", hidden, layers, bias=shift),
        *linear(f"{layer}.mlp.dense_h_to_4h", 2 * numbers.intermediate, hidden, layers, bias=bias),
        *linear(f"{layer}.mlp.dense_4h_to_h", hidden, numbers.intermediate, layers, bias=bias),
        *(final if config.flag("post_layer_norm") else ()),
        *head(numbers, "transformer.output_layer"),
    )
