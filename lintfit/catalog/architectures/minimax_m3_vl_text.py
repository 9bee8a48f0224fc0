"""The text model of MiniMax M3: blocks of keys chosen by an indexer, experts beside a shared one, Gemma's norms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, fused_experts, linear, norm, router
from lintfit.catalog.architectures._decoder import DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, MoE, Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
DEFAULTS = defaults("minimax_m3_vl_text")
CODE = Code(flash_attention_2=NEVER)
SPARSE = "minimax_m3_sparse"
_OF_CHECKPOINTS = {
    "index_n_heads": "sparse_num_index_heads",
    "index_head_dim": "sparse_index_dim",
    "index_block_size": "sparse_block_size",
    "index_topk_blocks": "sparse_topk_blocks",
    "index_local_blocks": "sparse_local_block",
}
"""What ``sparse_attention_config`` calls the indexer's numbers."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``MiniMaxM3VLTextConfig.__post_init__``: the layers one by one, the activation, and the indexer's numbers."""
    sparse, layers = given.get("sparse_attention_config"), given.get("num_hidden_layers")
    values: dict[str, Any] = {**given, "hidden_act": "silu"}
    if isinstance(sparse, Mapping):
        values.update({flat: sparse[name] for flat, name in _OF_CHECKPOINTS.items() if name in sparse})
        listed = sparse.get("sparse_attention_freq")
        if values.get("layer_types") is None and isinstance(listed, list | tuple):
            values["layer_types"] = [SPARSE if one else "full_attention" for one in listed]
    routed = values.pop("moe_layer_freq", None)  # a list here
    if values.get("mlp_layer_types") is None and isinstance(routed, list | tuple):
        values["mlp_layer_types"] = ["sparse" if one else "dense" for one in routed]
    if not isinstance(layers, int) or not 0 < layers <= LARGEST["layers"]:
        return values
    for key, usual in (("layer_types", "full_attention"), ("mlp_layer_types", "sparse")):
        if values.get(key) is None:
            values[key] = [usual] * layers
    return values


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    routed = config.strings("mlp_layer_types").count("sparse")
    moe = MoE(
        experts=config.size("num_local_experts", "num_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=numbers.intermediate,
        layers=routed,
        shared_intermediate=config.size("shared_intermediate_size", kind="intermediate"),
    )
    dense = config.size("dense_intermediate_size", kind="intermediate")
    return replace(numbers, intermediate=dense, moe=moe if routed else None, qk_norm=True)


def fused_mlp(name: str, hidden: int, intermediate: int, copies: int) -> list[Tensor]:
    """Gate and up in one projection, and down."""
    return [
        *linear(f"{name}.gate_up_proj", 2 * intermediate, hidden, copies),
        *linear(f"{name}.down_proj", hidden, intermediate, copies),
    ]


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer = shape(config), "model.layers.{}"
    hidden, moe, mlp, indexer = numbers.hidden, numbers.moe, f"{layer}.mlp", f"{layer}.self_attn.indexer"
    style = DecoderStyle(qk_norm=(numbers.head_dim, numbers.head_dim))
    indexed = config.strings("layer_types").count(SPARSE)
    heads, width = config.size("index_n_heads", kind="heads"), config.size("index_head_dim", kind="head_dim")
    found = [
        *self_attention(numbers, style),
        *linear(f"{indexer}.q_proj", heads * width, hidden, indexed),
        *linear(f"{indexer}.k_proj", width, hidden, indexed),
        *norm(f"{indexer}.q_norm", width, indexed),
        *norm(f"{indexer}.k_norm", width, indexed),
        *fused_mlp(mlp, hidden, numbers.intermediate, numbers.layers - (moe.layers if moe else 0)),
        *layer_norms(numbers, style),
    ]
    if moe is not None:
        found += router(f"{mlp}.gate", moe.experts, hidden, moe.layers)
        found += fused_experts(f"{mlp}.experts", moe.experts, hidden, moe.intermediate, moe.layers)
        found += fused_mlp(f"{mlp}.shared_experts", hidden, moe.shared_intermediate, moe.layers)
    return around(numbers, style, found)
