"""One line of an explanation: bytes, the product that they come from, and where that is known from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from lintfit.frozen import frozen
from lintfit.memory.spec import GIB

Factor = tuple[float, str]
"""A number and what it counts: ``(8, "bytes")``, ``(6738415616, "trained parameters")``."""

ROUNDING = "padding, and torch's blocks of 512 bytes"
OTHER = "not told apart"
"""What a term says that holds the bytes which no other term accounts for."""

SMALL_SHARE, SMALL_BYTES = 0.005, 2**20
"""Up to which share of a component, or how many bytes, a rest counts as rounding."""


@frozen
class Term:
    """Part of one component: ``size`` bytes are the product of ``factors`` divided by ``over``, up to rounding.

    Without factors the bytes are a figure of their own. ``what`` says what it is, ``source`` where that is known
    from: a function of a library, or a measurement.
    """

    component: str
    what: str
    size: int
    factors: tuple[Factor, ...] = ()
    over: Factor | None = None
    source: str = ""

    @property
    def product(self) -> float | None:
        """What the numbers of the formula come to; None where there is no formula."""
        if not self.factors:
            return None
        return math.prod(amount for amount, _ in self.factors) / (self.over[0] if self.over else 1)

    @property
    def formula(self) -> str:
        """``8 bytes × 6,738,415,616 trained parameters / 8 ranks``; empty for a figure of its own."""
        text = " × ".join(_factor(factor) for factor in self.factors)
        return f"{text} / {_factor(self.over)}" if self.over and self.over[0] != 1 else text

    @property
    def line(self) -> str:
        """The whole term: formula, size, meaning and source."""
        reason = "; ".join(part for part in (self.what, self.source) if part)
        shown = f"{self.formula} = {amount(self.size)}" if self.factors else amount(self.size)
        return f"{shown} ({reason})"


def _factor(factor: Factor) -> str:
    number, unit = factor
    whole = abs(number - round(number)) < 1e-9
    return f"{round(number):,} {unit}" if whole else f"{number:,.4f} {unit}"


def amount(size: int) -> str:
    """Bytes for people: GiB, MiB where that says more, bytes where it is little."""
    if abs(size) >= GIB // 10:
        return f"{size / GIB:.2f} GiB"
    if abs(size) >= 2**20 // 10:
        return f"{size / 2**20:.1f} MiB"
    return f"{size:,} bytes"


def term(
    component: str, what: str, size: float, *factors: Factor, over: Factor | None = None, source: str = ""
) -> Term:
    """A term from its parts."""
    return Term(component, what, int(size), factors, over, source)


def settled(component: str, terms: Sequence[Term], size: int) -> list[Term]:
    """The terms of one component that count for something, with the rest to ``size`` bytes as a term of its own."""
    found = [item for item in terms if item.component == component and item.size]
    rest = size - sum(item.size for item in found)
    if rest:
        small = abs(rest) <= max(SMALL_BYTES, SMALL_SHARE * size)
        found.append(Term(component, ROUNDING if small else OTHER, rest))
    return found


def nearest(alternatives: Sequence[Sequence[Term]], sizes: dict[str, int]) -> list[Term]:
    """Of several ways in which a moment may have come about (its largest point), the one that its bytes tell."""

    def distance(terms: Iterable[Term]) -> int:
        summed = dict.fromkeys(sizes, 0)
        for item in terms:
            summed[item.component] = summed.get(item.component, 0) + item.size
        return sum(abs(size - sizes.get(name, 0)) for name, size in summed.items())

    return list(min(alternatives, key=distance))
