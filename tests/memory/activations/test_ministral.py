"""Ministral's layers, with and without a window.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from lintfit.catalog import models
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds

SMALL: dict[str, Any] = {
    "model_type": "ministral", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "sliding_window": 128,
}  # fmt: skip
MIXED = {**SMALL, "layer_types": ["full_attention", "sliding_attention"]}


def test_layers_are_told_apart_by_their_windows() -> None:
    facts = models.from_config(MIXED)
    assert [kind.window for kind in kinds(facts)] == [None, 128]
    assert known(facts)
