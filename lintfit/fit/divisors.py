"""Divisors: the sizes of a micro-batch that cut the same samples into whole steps."""

from __future__ import annotations

from math import isqrt


def divisors(number: int) -> list[int]:
    """All divisors of a positive number, the largest first."""
    small = [size for size in range(1, isqrt(number) + 1) if number % size == 0]
    return sorted({*small, *(number // size for size in small)}, reverse=True)
