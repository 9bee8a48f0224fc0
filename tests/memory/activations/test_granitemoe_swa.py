"""Granite MoE Swash's layers against torch's own count of small ones.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD, 4 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

PLAIN = {"gradient_checkpointing": False, "evaluation": {"batch_size": 0}}
SMALL: dict[str, Any] = {
    "vocab_size": 1000,
    "num_hidden_layers": 2,
    "model_type": "granitemoe_swa",
    "hidden_size": 512,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "shared_intermediate_size": 512,
    "layer_rope_theta": [10000.0, 0],
}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 881.640),
        (SMALL, AMP, 1253.858),
        (SMALL, FP32, 1226.292),
        (SMALL, {**BF16, **GC}, 533.069),
        (SMALL, {**HALF_AMP, **EVERY}, 854.908),
        (SMALL, {**HALF_AMP, **EVERY, **REENTRANT}, 541.470),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    assert step(config, 4, 1024, {**PLAIN, **more}).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)
