"""RecurrentGemma's layers against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, two or three layers: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, REENTRANT
from lintfit.catalog import models
from lintfit.catalog.config import CatalogError
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from tests.memory.activations.steps import BF16, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "recurrent_gemma", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 64, "attention_window_size": 64,
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "counted"), [(GC, 38.755), (REENTRANT, 20.736), ({"gradient_checkpointing": False}, 18.736)]
)
def test_what_the_last_states_hold_is_there_in_the_optimizers_step(more: dict[str, Any], counted: float) -> None:
    found = step({**SMALL, "num_hidden_layers": 2}, 4, 128, {**BF16, **more})
    (moment,) = [moment for moment in found.moments if moment.phase == "step"]
    assert moment.allocated / MIB == pytest.approx(counted, rel=3e-3)


def test_the_pattern_of_blocks_is_repeated() -> None:
    facts = models.from_config({**SMALL, "num_hidden_layers": 5})
    assert [bool(kind.mixer) for kind in kinds(facts)] == [True, True, False, True, True]
    assert (facts.sliding_window, facts.logit_softcap, facts.intermediate) == (64, 30.0, 1024)
    assert known(facts)


def test_gates_divide_the_recurrence() -> None:
    with pytest.raises(CatalogError, match="must be a multiple of num_attention_heads"):
        models.from_config({**SMALL, "lru_width": 500})
