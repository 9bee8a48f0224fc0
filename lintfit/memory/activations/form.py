"""Closed forms of a tape: what is alive at each point of its passes, as multiples of a few distinct sizes.

Which tensors are alive at a point does not depend on their sizes. A tape is therefore followed once
(:mod:`.replay`), and a micro-batch's numbers only have to be filled in. All sizes are bytes of one rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import ge, mul
from typing import NamedTuple

from lintfit.memory.activations.tape import BLOCK, Extent, Storage

TEMPORARY = 3
"""The kind of gradients on their way and of scratch; the other kinds are a storage's."""

Amounts = tuple[int, ...]
"""How much of each size of a table is alive."""

Sizes = list[int]
"""The sizes of a table for one micro-batch."""


class Live(NamedTuple):
    """Bytes alive at one point of a backward pass, by what they are."""

    activations: int = 0
    logits: int = 0
    casts: int = 0
    temporaries: int = 0
    gradients: int = 0

    @property
    def total(self) -> int:
        return sum(self)


class Table:
    """The sizes that make up a tape's, and their columns, one for each kind of memory.

    Most tensors are whole blocks for every element of their extent, so that their bytes add up: these share the extent
    itself as their size. Of the others each is rounded up for itself and has a size of its own.
    """

    __slots__ = ("_columns", "_kinds", "_sizes", "rows")

    def __init__(self) -> None:
        self._columns: dict[tuple[int, int, Extent], int] = {}
        self._kinds: list[int] = []
        self._sizes: dict[tuple[int, Extent], int] = {}
        self.rows: list[int] = []
        """Of each column its size's index."""

    def column(self, kind: int, size: int, per: Extent, rounds: bool = True) -> tuple[int, int]:
        """The column of ``size`` bytes for each of ``per``, and how much of it these are.

        ``rounds``: whether they come in whole blocks of the allocator.
        """
        alone = size if rounds and size % BLOCK else 0
        key = kind, alone, per
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = len(self.rows)
            self._kinds.append(kind)
            self.rows.append(self._sizes.setdefault(key[1:], len(self._sizes)))
        return found, 1 if alone else size

    def storage(self, storage: Storage) -> tuple[int, int]:
        """The column of a storage, and how much of it the storage is."""
        return self.column(storage.kind, storage.bytes, storage.per)

    def amounts(self, parts: Iterable[tuple[int, int]]) -> Amounts:
        """How much there is of each column."""
        parts = list(parts)
        found = [0] * len(self.rows)
        for column, amount in parts:
            found[column] += amount
        return tuple(found)

    def together(self, amounts: Sequence[int]) -> Amounts:
        """How much there is of each size, whatever the kind."""
        found = [0] * len(self._sizes)
        for row, amount in zip(self.rows, amounts, strict=False):
            found[row] += amount
        return tuple(found)

    def sizes(self, batch: int, seq: int) -> Sizes:
        """The sizes for ``batch`` sequences of ``seq`` tokens."""
        return [
            -(-alone * per(batch, seq) // BLOCK) * BLOCK if alone else per(batch, seq) for alone, per in self._sizes
        ]

    def live(self, amounts: Amounts, sizes: Sizes) -> Live:
        """Bytes of columns by kind."""
        found = [0, 0, 0, 0]
        for kind, row, amount in zip(self._kinds, self.rows, amounts, strict=False):
            if amount:
                found[kind] += amount * sizes[row]
        return Live(*found)


def total(together: Amounts, sizes: Sizes) -> int:
    """Bytes of all kinds together."""
    return sum(map(mul, together, sizes))


def uncovered(points: Sequence[Amounts]) -> list[Amounts]:
    """Those of several points that may have the most bytes: without what the one that looks largest covers."""
    if not points:
        return []
    largest = max(points, key=sum)
    return [largest, *[point for point in points if not all(map(ge, largest, point))]]


class Point(NamedTuple):
    """One point of a backward pass: what is alive, and bytes of the parameter gradients made at it and done before."""

    together: Amounts
    made: int
    done: int
    alive: Amounts

    def covers(self, other: Point) -> bool:
        """Whether there is at no micro-batch more at the other point."""
        return (
            self.made >= other.made
            and self.made + self.done >= other.made + other.done
            and all(map(ge, self.together, other.together))
        )


def highest(points: Sequence[Point]) -> list[Point]:
    """The points that may be the peak, in order: without most of those that another one near them covers."""
    found: list[Point] = []
    for point in points:
        if any(before.covers(point) for before in found[-2:]):
            continue
        # Of two points with as much alive the first is the peak.
        while found and point.together != found[-1].together and point.covers(found[-1]):
            found.pop()
        found.append(point)
    return found


class Backward(NamedTuple):
    """The points of a backward pass that may be its peak, in order.

    A checkpointed layer is run again when the first of its nodes asks for a saved tensor: ``waiting`` is alive then,
    beside that forward pass, and the points of ``before`` are past.
    """

    table: Table
    before: Sequence[Point]
    after: Sequence[Point]
    waiting: Amounts

    def peak(
        self, sizes: Sizes, *, kept: float = 1.0, extra: int = 0, recompute: int = 0, incoming: int | None = None
    ) -> Live:
        """What is alive at the point with the most bytes, the first of equals.

        ``kept`` is the share of each parameter gradient that stays on this rank as a gradient of its own: 1 for a
        plain step, 0 where it is added to an earlier micro-batch's, 1/ranks where it is reduced and sharded.
        ``extra`` bytes (a recomputed layer's output, say) are alive throughout. ``recompute``: the worst point of the
        forward pass that is run again, when the gradients ``incoming`` are there: those of ``waiting`` where None.
        """
        points = (*self.before, *self.after)
        totals = [sum(map(mul, together, sizes)) + made + int(kept * done) for together, made, done, _ in points]
        most = max(totals)
        index = totals.index(most)
        if recompute:
            waiting = total(self.waiting, sizes) if incoming is None else incoming
            again = recompute + waiting
            if again > most + extra or (again == most + extra and index >= len(self.before)):
                return Live(recompute, temporaries=waiting)
        _, made, done, alive = points[index]
        parts = self.table.live(alive, sizes)
        stays = int(kept * made)
        return parts._replace(
            temporaries=parts.temporaries + extra + made - stays,
            gradients=int(kept * (done + made)),
        )
