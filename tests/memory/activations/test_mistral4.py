"""Mistral 4's layers.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from lintfit.catalog import models
from lintfit.memory.activations.families import known

SMALL: dict[str, Any] = {
    "model_type": "mistral4", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 1000, "q_lora_rank": 256, "kv_lora_rank": 128,
    "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 16,
    "num_experts_per_tok": 4, "moe_intermediate_size": 256, "n_group": 1, "topk_group": 1, "n_shared_experts": 1,
    "first_k_dense_replace": 0,
}  # fmt: skip


def test_the_text_part_of_a_model_that_sees_is_the_same() -> None:
    facts = models.from_config({"model_type": "mistral3", "text_config": SMALL})
    alone = models.from_config(SMALL)
    assert known(facts) and known(alone)
    assert facts.vision is not None
    ours = sorted((tensor.shape, tensor.copies) for tensor in facts.tensors if tensor.where != "vision")
    assert ours == sorted((tensor.shape, tensor.copies) for tensor in alone.tensors)
