"""MiniMax-01's lightning attention.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.config import CatalogError
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.micro_batch.buffers import buffers

SMALL: dict[str, Any] = {
    "model_type": "minimax", "hidden_size": 1024, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "num_local_experts": 8,
    "num_experts_per_tok": 2, "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip
LINEAR = {**SMALL, "layer_types": ["linear_attention"] * 2}
WINDOWS = {**SMALL, "num_hidden_layers": 4, "sliding_window": 128, "block_size": 128, "layer_types": None}


def test_every_second_layer_is_linear_where_nothing_is_said() -> None:
    facts = models.from_config(WINDOWS)
    assert [kind.mixer for kind in kinds(facts)] == ["", "linear_attention"] * 2
    assert [kind.window for kind in kinds(facts)] == [128, None] * 2
    assert known(facts)


def test_decays_are_buffers_of_every_linear_layer() -> None:
    facts = models.from_config(SMALL)
    assert buffers(facts, 2) == 512 + 2 * 16 * 256 * 2 + 16 * 256**2 * 2
    assert buffers(models.from_config(LINEAR), 4) == 2 * (512 + 2 * 16 * 256 * 4 + 16 * 256**2 * 4)


def test_every_layer_has_a_type() -> None:
    with pytest.raises(CatalogError, match="must name each of the 3 layers"):
        models.from_config({**SMALL, "num_hidden_layers": 3})
