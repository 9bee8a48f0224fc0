"""Adapters of models with experts, counted by PEFT 0.21 on transformers 5.23 (rank 4, models of 3 layers on meta)."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.tensors.parameters import inventory

SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
}
LATENT = {"kv_lora_rank": 24, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 12, "num_key_value_heads": 8}
ROUTED = {"n_routed_experts": 4, "moe_intermediate_size": 40, "num_experts_per_tok": 2, "first_k_dense_replace": 1}
EXPERTS = {"num_experts": 6, "moe_intermediate_size": 40}
MLP = ["q_proj", "v_proj", "gate_proj", "up_proj", "down_proj"]
OLD_MIXTRAL = ["q_proj", "v_proj", "w1", "w2", "w3"]

COUNTED: tuple[tuple[str, dict[str, Any], list[str], int, int], ...] = (
    ("mixtral", {"num_local_experts": 4}, OLD_MIXTRAL, 57264, 53952),
    ("qwen2_moe", {**EXPERTS, "shared_expert_intermediate_size": 80}, MLP, 10956, 7680),
    ("qwen3_moe", {**EXPERTS, "mlp_only_layers": [0]}, MLP, 24368, 21312),
    ("olmoe", {"num_experts": 4}, MLP, 57264, 53952),
    ("glm4_moe", {**ROUTED, "head_dim": 8}, MLP, 18080, 15040),
    ("deepseek_v3", {**LATENT, **ROUTED, "n_group": 2, "topk_group": 1, "q_lora_rank": 20}, MLP, 20720, 12544),
    ("deepseek_v2", {**LATENT, **ROUTED, "q_lora_rank": None}, MLP, 20240, 14464),
    ("gpt_oss", {"head_dim": 8, "num_local_experts": 4}, MLP, 4992, 2496),
    ("phimoe", {"num_local_experts": 4}, MLP, 5808, 2496),
    ("granitemoe", {"num_local_experts": 4}, MLP, 4992, 2496),
)


@pytest.mark.parametrize(("kind", "config", "names", "every", "some"), COUNTED, ids=[row[0] for row in COUNTED])
def test_trained_parameters(kind: str, config: dict[str, Any], names: list[str], every: int, some: int) -> None:
    spec = {
        "model_config": {"model_type": kind, **SMALL, **config},
        "method": "lora",
        "lora_rank": 4,
        "micro_batch_size": 1,
        "seq_len": 128,
        "versions": {"transformers": "5.23.0"},
    }
    assert inventory(spec_from_mapping({**spec, "lora_targets": "all-linear"})).trainable == every
    assert inventory(spec_from_mapping({**spec, "lora_targets": names})).trainable == some
