"""DBRX: a fused projection whose result is clipped, LayerNorm without biases, experts in three matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, embedding, head, head_dim_of, linear, norm
from lintfit.catalog.architectures._multimodal import part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor

REQUIRED = ("d_model", "n_heads", "n_layers", "vocab_size")
DEFAULTS = defaults("dbrx")
ATTENTION: Mapping[str, Any] = {"attn_pdrop": 0.0, "clip_qkv": None, "kv_n_heads": 1}
FFN = defaults("dbrx.ffn_config")


def shape(config: Config) -> Shape:
    attention, ffn = part(config, "attn_config", ATTENTION), part(config, "ffn_config", FFN)
    heads, kv_heads = config.size("n_heads", kind="heads"), attention.size("kv_n_heads", kind="heads")
    if heads % kv_heads:
        raise attention.error("kv_n_heads", f"must divide n_heads ({heads})")
    layers, width = config.size("n_layers", kind="layers"), ffn.size("ffn_hidden_size", kind="intermediate")
    experts, top_k = ffn.size("moe_num_experts", kind="experts"), ffn.size("moe_top_k", kind="experts")
    chosen = ffn.section("ffn_act_fn").get("name")
    return Shape(
        hidden=config.size("d_model", kind="hidden"),
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim_of(config, "d_model", "n_heads"),
        intermediate=width,
        vocab=config.size("vocab_size", kind="vocab"),
        tied=False,
        gated=True,
        norm="layernorm",
        activation=chosen if isinstance(chosen, str) else "silu",
        max_positions=config.count("max_seq_len", kind="positions") or None,
        moe=MoE(experts=experts, top_k=top_k, intermediate=width, layers=layers),
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers, block, moe = numbers.hidden, numbers.layers, "transformer.blocks.{}", numbers.moe
    assert moe is not None
    inner = f"{block}.norm_attn_norm"
    rows = moe.experts * moe.intermediate
    return (
        *embedding("transformer.wte", numbers.vocab, hidden),
        *norm(f"{inner}.norm_1", hidden, layers),
        *linear(f"{inner}.attn.Wqkv", numbers.query + 2 * numbers.key_value, hidden, layers),
        *linear(f"{inner}.attn.out_proj", hidden, hidden, layers),
        *norm(f"{inner}.norm_2", hidden, layers),
        *linear(f"{block}.ffn.router.layer", moe.experts, hidden, layers, role="router"),
        *(Tensor(f"{block}.ffn.experts.mlp.{name}", (rows, hidden), layers, "expert") for name in ("w1", "v1", "w2")),
        *norm("transformer.norm_f", hidden, where="final"),
        *head(numbers),
    )
