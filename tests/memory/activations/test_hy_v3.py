"""Hy3's layers, one dense and one of experts, against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "hy_v3", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "num_experts": 16,
    "num_experts_per_tok": 4, "moe_intermediate_size": 256,
}  # fmt: skip
ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 693.21),
        (AMP, 914.30),
        (FP32, 1667.08),
        ({**BF16, "attention": "eager"}, 1517.89),
        ({**BF16, **GC}, 498.74),
        ({**BF16, **REENTRANT}, 538.62),
        ({**HALF_AMP, **ALL}, 625.36),
        ({**HALF_AMP, **QUERIES}, 562.53),
        ({**BF16, "padded_batches": True}, 733.21),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)
