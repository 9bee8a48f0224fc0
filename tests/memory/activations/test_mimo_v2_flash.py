"""MiMo V2 Flash's layers, with and without a window.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.config import CatalogError
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import heads_of

SMALL: dict[str, Any] = {
    "model_type": "mimo_v2_flash", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 3,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 96, "v_head_dim": 64, "vocab_size": 1000,
    "n_routed_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 256, "sliding_window": 128,
    "layer_types": ["full_attention", "sliding_attention", "full_attention"],
}  # fmt: skip


def test_layers_with_a_window_have_twice_the_key_heads() -> None:
    facts = models.from_config(SMALL)
    assert [(heads_of(facts, index).keys, heads_of(facts, index).window) for index in range(3)] == [
        (4, None), (8, 128), (4, None),
    ]  # fmt: skip
    assert known(facts)


def test_the_first_layer_and_every_sixth_attend_to_everything() -> None:
    facts = models.from_config({**SMALL, "num_hidden_layers": 12, "layer_types": None, "sliding_window_size": 64})
    assert [index for index in range(12) if heads_of(facts, index).window is None] == [0, 5, 11]
    assert facts.sliding_window == 65
    assert facts.moe is not None and facts.moe.layers == 11


def test_key_heads_of_a_window_divide_the_heads() -> None:
    with pytest.raises(CatalogError, match="twice that must divide"):
        models.from_config({**SMALL, "num_key_value_heads": 16})
