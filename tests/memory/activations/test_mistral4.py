"""Mistral 4's layers against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, two layers: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory.activations.families import known
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "mistral4", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 1000, "q_lora_rank": 256, "kv_lora_rank": 128,
    "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 16,
    "num_experts_per_tok": 4, "moe_intermediate_size": 256, "n_group": 1, "topk_group": 1, "n_shared_experts": 1,
    "first_k_dense_replace": 0,
}  # fmt: skip
OTHER = {
    **SMALL, "first_k_dense_replace": 1, "q_lora_rank": None, "v_head_dim": 64, "n_group": 4, "topk_group": 2,
    "rope_interleave": False, "n_routed_experts": 64,
}  # fmt: skip
"""A dense layer, queries of full rank, and values narrower than keys, which FlashAttention does not take."""
ALL = {**EVERY, "lora_dtype": "fp32"}
SOME = {**LORA, "lora_targets": ["q_b_proj", "o_proj"], "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 713.99),
        (SMALL, AMP, 1169.13),
        (SMALL, FP32, 1288.32),
        (SMALL, {**BF16, "attention": "eager"}, 1596.81),
        (SMALL, {**BF16, **GC}, 485.15),
        (SMALL, {**BF16, **REENTRANT}, 493.15),
        (SMALL, {**HALF_AMP, **ALL}, 725.20),
        (SMALL, {**HALF_AMP, **SOME}, 681.23),
        (SMALL, {**BF16, "padded_batches": True}, 697.99),
        (OTHER, BF16, 652.70),
        (OTHER, AMP, 1074.15),
        (OTHER, {**BF16, **GC}, 480.41),
        (OTHER, {**HALF_AMP, **ALL}, 723.86),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


def test_the_text_part_of_a_model_that_sees_is_the_same() -> None:
    facts = models.from_config({"model_type": "mistral3", "text_config": SMALL})
    alone = models.from_config(SMALL)
    assert known(facts) and known(alone)
    assert facts.vision is not None
    ours = sorted((tensor.shape, tensor.copies) for tensor in facts.tensors if tensor.where != "vision")
    assert ours == sorted((tensor.shape, tensor.copies) for tensor in alone.tensors)
