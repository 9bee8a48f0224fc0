"""Helium's layers against torch's own count of small ones.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD of the model below.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "helium",
    "hidden_size": 1024,
    "intermediate_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": 1000,
}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 388.984),
        (AMP, 487.340),
        (FP32, 1432.826),
        ({**BF16, "attention": "eager"}, 1404.465),
        ({**BF16, **GC}, 217.688),
        ({**BF16, **REENTRANT}, 225.688),
        ({**HALF_AMP, **EVERY}, 375.010),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    plain = {"gradient_checkpointing": False, "evaluation": {"batch_size": 0}}
    assert step(SMALL, 4, 1024, {**plain, **more}).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)
