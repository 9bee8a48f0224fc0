from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lintfit.fit.divisors import divisors


@given(st.integers(1, 5000))
def test_divisors_are_all_and_the_largest_first(number: int) -> None:
    assert divisors(number) == [size for size in range(number, 0, -1) if number % size == 0]
