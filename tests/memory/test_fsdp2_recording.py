"""FSDP 2 as ``bench/ranks/fsdp2.py`` finds it on two ranks (torch 2.13, gloo, fp32 shards, bf16 for compute)."""

from __future__ import annotations

from bench.ranks import fsdp2


def test_a_rank_holds_its_half_of_everything_in_fp32() -> None:
    hidden, middle = fsdp2.MODEL["hidden_size"], fsdp2.MODEL["intermediate_size"]
    keys = hidden * fsdp2.MODEL["num_key_value_heads"] // fsdp2.MODEL["num_attention_heads"]
    layer = 2 * hidden * (hidden + keys) + 3 * hidden * middle + 2 * hidden
    parameters = fsdp2.MODEL["num_hidden_layers"] * layer + 2 * fsdp2.MODEL["vocab_size"] * hidden + hidden
    shard = 4 * parameters // fsdp2.RANKS
    assert fsdp2.expected() == {"parameters": shard, "gradients": shard, "optimizer_states": 2 * shard}
