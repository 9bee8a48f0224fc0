"""RecurrentGemma's layers.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.config import CatalogError
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds

SMALL: dict[str, Any] = {
    "model_type": "recurrent_gemma", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 64, "attention_window_size": 64,
}  # fmt: skip


def test_the_pattern_of_blocks_is_repeated() -> None:
    facts = models.from_config({**SMALL, "num_hidden_layers": 5})
    assert [bool(kind.mixer) for kind in kinds(facts)] == [True, True, False, True, True]
    assert (facts.sliding_window, facts.logit_softcap, facts.intermediate) == (64, 30.0, 1024)
    assert known(facts)


def test_gates_divide_the_recurrence() -> None:
    with pytest.raises(CatalogError, match="must be a multiple of num_attention_heads"):
        models.from_config({**SMALL, "lru_width": 500})
