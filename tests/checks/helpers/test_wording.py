"""How messages write sizes."""

from __future__ import annotations

import pytest

from lintfit.checks.helpers.wording import of_gib
from lintfit.memory.spec import GIB


@pytest.mark.parametrize(
    ("size", "capacity", "text"),
    [
        (27.9, 23.59, "27.9 of 23.6 GiB"),
        (23.62, 23.59, "23.62 of 23.59 GiB"),
        (23.59, 23.59, "23.6 of 23.6 GiB"),
    ],
)
def test_a_size_that_only_just_exceeds_a_capacity_is_seen_to(size: float, capacity: float, text: str) -> None:
    assert of_gib(size * GIB, capacity * GIB) == text
