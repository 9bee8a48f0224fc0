"""What a spec may mean besides what it is taken to mean: the ends of the range count it."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate


def adapted(**more: Any) -> Estimate:
    stated = {"model": "meta-llama/Llama-2-7b-hf", "gpu": "A100-80GB", "method": "lora", "micro_batch_size": 4}
    return estimate(spec_from_mapping({**stated, "seq_len": 1024, **more}))


def test_adapters_that_nobody_places_are_pefts() -> None:
    """Neither weights nor activations of other layers: PEFT adapts query and value of a Llama."""
    unstated, placed = adapted(), adapted(lora_targets=["q_proj", "v_proj"])
    assert unstated.allocated_bytes == placed.allocated_bytes
    assert unstated.peak.low == placed.peak.low


def test_code_that_nobody_names_may_adapt_every_linear_layer() -> None:
    everywhere = adapted(lora_targets="all-linear")
    found = adapted()
    assert found.peak.high == pytest.approx(everywhere.peak.high, rel=0.01)
    assert any("whose code makes the adapters" in line for line in found.assumptions)


@pytest.mark.parametrize(
    "more",
    [{"lora_targets": ["q_proj"]}, {"front_end": "transformers"}, {"method": "full"}, {"gradient_checkpointing": True}],
)
def test_nothing_is_left_open_where_it_is_stated(more: dict[str, Any]) -> None:
    assert not any("whose code makes the adapters" in line for line in adapted(**more).assumptions)
