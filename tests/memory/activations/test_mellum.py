"""Mellum's layers against torch's own count of small ones.

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
    "model_type": "mellum",
    "hidden_size": 768,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 384,
    "sliding_window": 512,
    "layer_types": ["sliding_attention", "full_attention"],
}
MIXED: dict[str, Any] = {
    "vocab_size": 1000,
    "num_hidden_layers": 3,
    "model_type": "mellum",
    "hidden_size": 768,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 384,
    "sliding_window": 512,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
    "mlp_layer_types": ["dense", "sparse", "dense"],
}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 425.466),
        (SMALL, AMP, 628.915),
        (SMALL, FP32, 918.854),
        (SMALL, {**BF16, **GC}, 272.488),
        (SMALL, {**HALF_AMP, **EVERY}, 443.298),
        (SMALL, {**HALF_AMP, **EVERY, **REENTRANT}, 293.028),
        (MIXED, BF16, 558.583),
        (MIXED, AMP, 757.687),
        (MIXED, FP32, 1071.599),
        (MIXED, {**BF16, **GC}, 269.218),
        (MIXED, {**HALF_AMP, **EVERY}, 530.755),
        (MIXED, {**HALF_AMP, **EVERY, **REENTRANT}, 294.394),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    assert step(config, 4, 1024, {**PLAIN, **more}).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)
