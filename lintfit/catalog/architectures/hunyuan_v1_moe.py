"""Hunyuan with routed experts and a shared one (A13B)."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import KEYS, Names
from lintfit.catalog.architectures._experts import Experts
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import MoE
from lintfit.frozen import replace


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    listed = config.get("moe_topk")  # may state one for each layer; published ones are all the same
    top_k = config.numbers("moe_topk")[0] if isinstance(listed, list) and listed else config.size("moe_topk")
    experts, width = config.size("num_experts", kind="experts"), numbers.intermediate
    return replace(numbers, moe=MoE(experts, top_k, width, numbers.layers, shared_intermediate=width))


ROW = Plain(
    "Hunyuan's norms on the heads",
    required=(*KEYS, "num_experts"),
    numbers=shape,
    names=Names(qk_norms=("self_attn.query_layernorm", "self_attn.key_layernorm"), order="mixer qk_norms mlp norms"),
    qk_norm="head",
    mlp_bias=False,
    experts=Experts(("num_experts",), gate="mlp.gate.wg", shared="mlp.shared_mlp"),
)
