"""Evaluation through a window: groups of heads are repeated, and SDPA makes an additive mask of its own.

``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB of the largest moment of 8 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.steps import AMP, BF16, MIB, step

CONFIG: dict[str, Any] = {
    "model_type": "mistral", "hidden_size": 1024, "intermediate_size": 1024, "num_hidden_layers": 3,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000,
    "max_position_embeddings": 4096,
}  # fmt: skip


@pytest.mark.parametrize(
    ("precision", "window", "counted"),
    [(BF16, 512, 174.743), (AMP, 512, 352.913), (BF16, None, 157.242), (AMP, None, 315.412)],
)
def test_torchs_own_count(precision: dict[str, Any], window: int | None, counted: float) -> None:
    more = {**precision, "gradient_checkpointing": True, "evaluation": {"batch_size": 8}}
    guess = step({**CONFIG, "sliding_window": window}, 1, 1024, more)
    most = max(moment.allocated for moment in guess.moments if moment.in_evaluation)
    assert most / MIB == pytest.approx(counted, rel=3e-3)
