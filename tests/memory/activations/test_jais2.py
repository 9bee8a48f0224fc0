"""Jais 2's layers against torch's own count of small ones.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD, 4 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from tests.memory.activations.steps import AMP, BF16, HALF_AMP, MIB, step

PLAIN = {"gradient_checkpointing": False, "evaluation": {"batch_size": 0}}
EAGER = {"attention": "eager"}
SMALL: dict[str, Any] = {
    "vocab_size": 1000,
    "num_hidden_layers": 2,
    "model_type": "jais2",
    "hidden_size": 1024,
    "intermediate_size": 8192,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
}
GROUPED: dict[str, Any] = {
    "vocab_size": 1000,
    "num_hidden_layers": 2,
    "model_type": "jais2",
    "hidden_size": 1024,
    "intermediate_size": 1024,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 686.846),
        (SMALL, AMP, 925.281),
        (SMALL, {**BF16, **EAGER}, 1070.594),
        (SMALL, {**BF16, **GC}, 534.698),
        (SMALL, {**HALF_AMP, **EVERY, **REENTRANT}, 585.534),
        (GROUPED, BF16, 221.760),
        (GROUPED, {**BF16, **EAGER}, 1310.287),
        (GROUPED, {**BF16, **GC}, 135.750),
        (GROUPED, {**HALF_AMP, **EVERY, **REENTRANT}, 228.954),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    assert step(config, 4, 1024, {**PLAIN, **more}).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)
