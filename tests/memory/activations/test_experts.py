"""Layers with experts and with latent attention against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: bf16, SGD, 2 × 2048 tokens; without and with checkpointing.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import GIB

BASE: dict[str, Any] = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
    "max_position_embeddings": 4096,
}
LATENT: dict[str, Any] = {
    **BASE,
    "num_key_value_heads": 16,
    "q_lora_rank": 512,
    "kv_lora_rank": 256,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "n_routed_experts": 16,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1024,
    "n_group": 4,
    "topk_group": 2,
}
EXPERTS: dict[str, Any] = {**BASE, "num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 1024}
RECORDED: tuple[tuple[dict[str, Any], float, float | None], ...] = (
    ({**EXPERTS, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 4096}, 5.0114, None),
    ({**EXPERTS, "model_type": "qwen3_moe", "head_dim": 128}, 4.4969, None),
    ({**EXPERTS, "model_type": "olmoe", "intermediate_size": 1024}, 4.4958, 2.6634),
    ({**LATENT, "model_type": "deepseek_v3", "first_k_dense_replace": 4, "n_shared_experts": 1}, 3.8368, 2.1793),
    ({**LATENT, "model_type": "deepseek_v3", "first_k_dense_replace": 1, "n_shared_experts": 1}, 4.6016, 2.5662),
    ({**LATENT, "model_type": "deepseek_v2", "first_k_dense_replace": 1, "n_shared_experts": 2}, 4.7318, 2.6014),
)


@pytest.mark.parametrize(("config", "plain", "checkpointed"), RECORDED)
def test_torchs_own_count(config: dict[str, Any], plain: float, checkpointed: float | None) -> None:
    spec = {
        "model_config": config,
        "weights_dtype": "bf16",
        "optimizer": "sgd",
        "micro_batch_size": 2,
        "seq_len": 2048,
        "versions": {"transformers": "5.23.0"},
    }
    assert known(spec_from_mapping(spec).facts)
    assert estimate(spec_from_mapping(spec)).allocated_bytes == pytest.approx(plain * GIB, rel=1e-3)
    if checkpointed is not None:
        again = spec_from_mapping({**spec, "gradient_checkpointing": True})
        assert estimate(again).allocated_bytes == pytest.approx(checkpointed * GIB, rel=1e-3)
