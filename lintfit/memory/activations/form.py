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

Counts = tuple[int, ...]
"""How often each size of a table is alive."""

Sizes = list[int]
"""The bytes of every column of a table for one micro-batch."""


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
    """The distinct sizes of a tape, each of one kind: a column each."""

    __slots__ = ("_columns", "_extents", "_kinds", "_rows")

    def __init__(self) -> None:
        self._columns: dict[tuple[int, int, Extent, bool], int] = {}
        self._extents: list[Extent] = []
        self._kinds: list[int] = []
        self._rows: list[tuple[int, int, bool]] = []

    def column(self, kind: int, size: int, per: Extent, rounds: bool = True) -> int:
        """The column of ``size`` bytes for each of ``per``; ``rounds``: in whole blocks of the allocator."""
        key = kind, size, per, rounds
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = len(self._rows)
            if per not in self._extents:
                self._extents.append(per)
            self._kinds.append(kind)
            self._rows.append((size, self._extents.index(per), rounds))
        return found

    def storage(self, storage: Storage) -> int:
        """The column of a storage."""
        return self.column(storage.kind, storage.bytes, storage.per)

    def counts(self, columns: Iterable[int]) -> Counts:
        """How often each column occurs."""
        found = [0] * len(self._rows)
        for column in columns:
            found[column] += 1
        return tuple(found)

    def sizes(self, batch: int, seq: int) -> Sizes:
        """The bytes of every column for ``batch`` sequences of ``seq`` tokens."""
        numbers = [extent(batch, seq) for extent in self._extents]
        return [
            -(-size * numbers[index] // BLOCK) * BLOCK if rounds else size * numbers[index]
            for size, index, rounds in self._rows
        ]

    def live(self, alive: Counts, sizes: Sizes) -> Live:
        """Bytes by kind."""
        found = [0, 0, 0, 0]
        for count, size, kind in zip(alive, sizes, self._kinds, strict=False):
            if count:
                found[kind] += count * size
        return Live(*found)


def total(alive: Counts, sizes: Sizes) -> int:
    """Bytes of all kinds together."""
    return sum(map(mul, alive, sizes))


def uncovered(points: Sequence[Counts]) -> list[Counts]:
    """Those of several points that may have the most bytes: without what the one with most tensors covers."""
    if not points:
        return []
    fullest = max(points, key=sum)
    return [fullest, *[point for point in points if not all(map(ge, fullest, point))]]


class Point(NamedTuple):
    """One point of a backward pass: what is alive, and bytes of the parameter gradients made at it and done before."""

    alive: Counts
    made: int = 0
    done: int = 0


class Backward(NamedTuple):
    """The points of a backward pass in order.

    A checkpointed layer is run again when the first of its nodes asks for a saved tensor: ``waiting`` is alive then,
    beside that forward pass, and the first ``rerun`` points are past.
    """

    table: Table
    points: Sequence[Point]
    waiting: Counts
    rerun: int

    def peak(self, sizes: Sizes, *, kept: float = 1.0, extra: int = 0, recompute: int = 0) -> Live:
        """What is alive at the point with the most bytes, the first of equals.

        ``kept`` is the share of each parameter gradient that stays on this rank as a gradient of its own: 1 for a
        plain step, 0 where it is added to an earlier micro-batch's, 1/ranks where it is reduced and sharded.
        ``extra`` bytes (a recomputed layer's output, say) are alive throughout. ``recompute``: the worst point of the
        forward pass that is run again.
        """
        totals = [sum(map(mul, alive, sizes)) + made + int(kept * done) for alive, made, done in self.points]
        most = max(totals)
        index = totals.index(most)
        if recompute:
            waiting = total(self.waiting, sizes)
            if recompute + waiting > most or (recompute + waiting == most and index >= self.rerun):
                return Live(recompute, 0, 0, waiting + extra, 0)
        alive, made, done = self.points[index]
        parts = self.table.live(alive, sizes)
        stays = int(kept * made)
        return parts._replace(
            temporaries=parts.temporaries + extra + made - stays,
            gradients=int(kept * (done + made)),
        )
