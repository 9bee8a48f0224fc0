"""ChatGLM 6B, ChatGLM 2 and 3, GLM-4 9B, by the code in their repositories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, head_dim_of
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._plain import CLASSIC, Plain, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

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
    if is_first(config):
        return decoder(FIRST, config, numbers)
    bias = config.flag("add_bias_linear")
    row = replace(LATER, norm_bias=numbers.norm == "layernorm", bias=bias)
    final = row.names.final if config.flag("post_layer_norm") else ""
    row = replace(row, qkv_bias=bias or config.flag("add_qkv_bias"), names=replace(row.names, final=final))
    return decoder(row, config, numbers)


FIRST = replace(
    CLASSIC,
    about="ChatGLM 6B",
    names=Names(
        layer="transformer.layers.{}",
        embedding="transformer.word_embeddings",
        qkv=("attention.query_key_value",),
        out="attention.dense",
        up=("mlp.dense_h_to_4h",),
        down="mlp.dense_4h_to_h",
        final="transformer.final_layernorm",
        order="norm mixer norm mlp",
    ),
)
LATER = Plain(
    "ChatGLM 2 and 3, GLM-4 9B",
    names=replace(
        FIRST.names,
        layer="transformer.encoder.layers.{}",
        embedding="transformer.embedding.word_embeddings",
        qkv=("self_attention.query_key_value",),
        out="self_attention.dense",
        final="transformer.encoder.final_layernorm",
        head="transformer.output_layer",
    ),
)
