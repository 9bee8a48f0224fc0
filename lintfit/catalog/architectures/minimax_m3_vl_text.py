"""The text model of MiniMax M3: blocks of keys chosen by an indexer, experts beside a shared one, Gemma's norms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, around, attention, decoder_shape, linear, norm
from lintfit.catalog.architectures._decoder import LAYER_NORMS
from lintfit.catalog.architectures._experts import Experts, moe_of, named, routed
from lintfit.catalog.architectures._layer_kinds import FULL, counted, listed
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
DEFAULTS = defaults("minimax_m3_vl_text")
CODE = Code(flash_attention_2=NEVER)
EXPERTS = Experts(("num_local_experts", "num_experts"), layers=named, shared_width="shared_intermediate_size")
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
    routing = values.pop("moe_layer_freq", None)  # a list here
    found: Mapping[str, Any] = values
    if isinstance(sparse, Mapping):
        values.update({flat: sparse[name] for flat, name in _OF_CHECKPOINTS.items() if name in sparse})
        chosen = sparse.get("sparse_attention_freq")
        if isinstance(chosen, list | tuple):
            found = listed(found, [SPARSE if one else FULL for one in chosen])
    if isinstance(routing, list | tuple):
        found = listed(found, ["sparse" if one else "dense" for one in routing], "mlp_layer_types")
    if not counted(layers):
        return found
    return listed(listed(found, [FULL] * layers), ["sparse"] * layers, "mlp_layer_types")


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    moe, dense = moe_of(EXPERTS, config, numbers), config.size("dense_intermediate_size", kind="intermediate")
    return replace(numbers, intermediate=dense, moe=moe if moe.layers else None)


def fused_mlp(name: str, hidden: int, intermediate: int, copies: int) -> list[Tensor]:
    """Gate and up in one projection, and down."""
    return [
        *linear(f"{name}.gate_up_proj", 2 * intermediate, hidden, copies),
        *linear(f"{name}.down_proj", hidden, intermediate, copies),
    ]


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer = shape(config), "model.layers.{}"
    hidden, moe, mlp, indexer = numbers.hidden, numbers.moe, f"{layer}.mlp", f"{layer}.self_attn.indexer"
    indexed, head_dim = config.strings("layer_types").count(SPARSE), numbers.head_dim
    heads, width = config.size("index_n_heads", kind="heads"), config.size("index_head_dim", kind="head_dim")
    found = [
        *attention(f"{layer}.self_attn", numbers, numbers.layers),
        *linear(f"{indexer}.q_proj", heads * width, hidden, indexed),
        *linear(f"{indexer}.k_proj", width, hidden, indexed),
        *norm(f"{indexer}.q_norm", width, indexed),
        *norm(f"{indexer}.k_norm", width, indexed),
        *fused_mlp(mlp, hidden, numbers.intermediate, numbers.layers - (moe.layers if moe else 0)),
        *(part for name in ("q", "k") for part in norm(f"{layer}.self_attn.{name}_norm", head_dim, numbers.layers)),
        *(part for name in LAYER_NORMS for part in norm(f"{layer}.{name}", hidden, numbers.layers)),
    ]
    if moe is not None:
        found += routed(EXPERTS, layer, replace(numbers, moe=replace(moe, shared_intermediate=0)))
        found += fused_mlp(f"{mlp}.shared_experts", hidden, moe.shared_intermediate, moe.layers)
    return around(numbers, found)
