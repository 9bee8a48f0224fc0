"""Sparse attention of DeepSeek V3.2 and GLM 5.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from lintfit.catalog import models
from lintfit.memory.activations.dsa import indexes
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.tensors.parameters import inventory

DEEP: dict[str, Any] = {
    "model_type": "deepseek_v32", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 3,
    "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 1000, "q_lora_rank": 256, "kv_lora_rank": 128,
    "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 16,
    "num_experts_per_tok": 4, "moe_intermediate_size": 256, "n_group": 1, "topk_group": 1, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "index_n_heads": 4, "index_head_dim": 128, "index_topk": 256,
}  # fmt: skip
GLM = {**DEEP, "model_type": "glm_moe_dsa"}


def test_layers_take_the_choice_of_an_earlier_one() -> None:
    facts = models.from_config({**GLM, "num_hidden_layers": 6, "index_topk_freq": 2})
    assert [indexes(facts, index) for index in range(6)] == [True, True, False, True, False, True]


def test_no_gradient_reaches_an_indexer() -> None:
    base = {"model_config": GLM, "micro_batch_size": 1, "seq_len": 128}
    for more in ({}, {"method": "lora", "lora_targets": "all-linear"}):
        weights = [weight for weight in inventory(spec_from_mapping({**base, **more})).weights if weight.unreached]
        assert weights
        assert all(".indexer." in weight.name and not weight.trainable for weight in weights)
