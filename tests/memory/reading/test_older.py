"""Models that transformers 4 builds otherwise than 5."""

from __future__ import annotations

import pytest

from lintfit.catalog.architectures import t5
from lintfit.memory.reading.parse import spec_from_mapping
from tests.support import published


@pytest.mark.parametrize(
    ("versions", "heads", "told"),
    [
        ({}, 0, True),
        ({"transformers": "5.2.0"}, 0, False),
        ({"transformers": "4.57.1"}, 1, False),
        ({"torch": "1.13.1"}, 1, False),
    ],
)
def test_transformers_4_gives_t5_1_1_an_output_layer_of_its_own(
    versions: dict[str, str], heads: int, told: bool
) -> None:
    """mT5 XXL has 1.02 B parameters more then; T5 itself shares the embedding in every version."""
    mt5 = spec_from_mapping({"model": "google/mt5-xxl", "versions": versions}).facts
    assert mt5.parameters == published("google/mt5-xxl") + 250_112 * 4096 * heads
    assert mt5.tied is not bool(heads)
    first = spec_from_mapping({"model": "t5-3b", "versions": versions}).facts
    assert first.tied
    assert [any(note in facts.notes for note in t5.NOTES) for facts in (mt5, first)] == [told, told]
