"""Layers that slide but for every fourth, where a config does not name them one by one.

What torch counts of small models is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.steps import BF16, step

SMALL: dict[str, Any] = {
    "vocab_size": 1000, "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 2, "max_position_embeddings": 2048, "pad_token_id": 0, "sliding_window": 256,
}  # fmt: skip
PLAIN = {"gradient_checkpointing": False}


@pytest.mark.parametrize("kind", ["cohere2", "exaone4", "olmo3"])
def test_layers_that_are_not_named_are_those_of_the_pattern(kind: str) -> None:
    config = {**SMALL, "model_type": kind}
    slides, whole = "sliding_attention", "full_attention"
    unnamed, fourth, first = (
        step({**config, **types}, 4, 512, {**PLAIN, **BF16}).allocated_bytes
        for types in ({}, {"layer_types": [slides, slides, slides, whole]}, {"layer_types": [slides] * 4})
    )
    assert unnamed == fourth != first


@pytest.mark.parametrize("kind", ["cohere2", "exaone4"])
def test_a_pattern_of_the_configs_own(kind: str) -> None:
    config = {**SMALL, "model_type": kind}
    second, fourth = (
        step({**config, "sliding_window_pattern": every}, 4, 512, {**PLAIN, **BF16}).allocated_bytes for every in (2, 4)
    )
    assert second < fourth
