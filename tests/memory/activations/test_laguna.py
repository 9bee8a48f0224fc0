"""Laguna's layers, with and without a window.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from lintfit.catalog import models
from lintfit.memory.activations.kinds import heads_of

SMALL: dict[str, Any] = {
    "model_type": "laguna", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "num_experts": 16,
    "num_experts_per_tok": 4, "moe_intermediate_size": 256, "shared_expert_intermediate_size": 256,
    "sliding_window": 128, "layer_types": ["full_attention", "sliding_attention"] * 2,
}  # fmt: skip


def test_layers_have_heads_of_their_own() -> None:
    facts = models.from_config({**SMALL, "num_attention_heads_per_layer": [16, 8, 16, 8]})
    assert [heads_of(facts, index).queries for index in range(4)] == [16, 8, 16, 8]
