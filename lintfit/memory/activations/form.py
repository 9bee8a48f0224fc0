"""Closed forms of a tape: what comes and goes in its passes, tensor by tensor, for any micro-batch.

Which tensors are alive at a point does not depend on their sizes. A tape is therefore followed once
(:mod:`.replay`), and a micro-batch's numbers only have to be filled in. All sizes are bytes of one rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import neg
from typing import NamedTuple

from lintfit.memory.activations.tape import BLOCK, Extent, Storage

TEMPORARY = 3
"""The kind of gradients on their way and of scratch; the other kinds are a storage's."""

Changes = Sequence[int]
"""Numbers of a table in the order of a pass: one above zero is allocated, its opposite freed."""

Sizes = list[int]
"""Bytes of every number of a table for one micro-batch; the opposite number, as an index from the end, has the opposite
size."""


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
    """The tensors of a tape, numbered from 1 on: all of one kind and size have one number."""

    __slots__ = ("_extents", "_kinds", "_numbers", "_tensors")

    def __init__(self) -> None:
        self._extents: dict[Extent, int] = {}
        self._numbers: dict[tuple[int, int, Extent, bool], int] = {}
        self._tensors: list[tuple[int, int, int]] = []
        """Bytes for each of an extent, the extent's index, and the blocks that they come in."""
        self._kinds: list[int] = []

    def number(self, kind: int, size: int, per: Extent, rounds: bool = True) -> int:
        """The number of ``size`` bytes for each of ``per``.

        ``rounds``: whether they come in whole blocks of the allocator.
        """
        key = kind, size, per, rounds
        found = self._numbers.get(key)
        if found is None:
            self._kinds.append(kind)
            found = self._numbers[key] = len(self._kinds)
            self._tensors.append((size, self._extents.setdefault(per, len(self._extents)), BLOCK if rounds else 1))
        return found

    def storage(self, storage: Storage) -> int:
        """The number of a storage."""
        return self.number(storage.kind, storage.bytes, storage.per)

    def numbers(self, storages: Iterable[Storage]) -> Changes:
        """The numbers of several storages."""
        return tuple(map(self.storage, storages))

    def sizes(self, batch: int, seq: int) -> Sizes:
        """The sizes for ``batch`` sequences of ``seq`` tokens."""
        counts = [per(batch, seq) for per in self._extents]
        sizes = [-(-size * counts[extent] // block) * block for size, extent, block in self._tensors]
        return _by_number(sizes, map(neg, sizes))

    def live(self, changes: Changes, sizes: Sizes) -> Live:
        """Bytes by kind once these changes are made."""
        kinds = _by_number(self._kinds, self._kinds)
        found = [0, 0, 0, 0]
        for number in changes:
            found[kinds[number]] += sizes[number]
        return Live(*found)


def _by_number(above: Sequence[int], below: Iterable[int]) -> list[int]:
    """A list whose indices are the numbers from 1 on, and from -1 down."""
    return [0, *above, *reversed([*below])]


def total(changes: Changes, sizes: Sizes) -> int:
    """Bytes once these changes are made."""
    return sum([sizes[number] for number in changes])


class Passed(NamedTuple):
    """What a watched forward pass allocates and frees.

    A point is how many of the changes are made by then. ``points``: behind every operation. ``early``: those of them
    that non-reentrant checkpointing reaches when it runs the pass again.
    """

    changes: Changes
    points: Sequence[int]
    early: Sequence[int]

    def peak(self, sizes: Sizes, *, early: bool = False) -> int:
        """Bytes at the worst point, 0 where there is none."""
        points = self.early if early else self.points
        alive = list(accumulate([sizes[number] for number in self.changes], initial=0))
        return max([alive[point] for point in points], default=0)


Point = tuple[int, int, int]
"""One point of a backward pass: how many of its changes are made by then, and bytes of the parameter gradients that are
made at it, and of those made before."""


class Backward(NamedTuple):
    """What a backward pass allocates and frees, beginning with what is ``saved``.

    A checkpointed layer is run again when the first of its nodes asks for a saved tensor: the ``past`` first points
    are over then, and beside that forward pass is alive what the changes up to the ``waiting``-th left.
    """

    table: Table
    saved: Changes
    changes: Changes
    points: Sequence[Point]
    past: int
    waiting: int

    def peak(
        self, sizes: Sizes, *, kept: float = 1.0, extra: int = 0, recompute: int = 0, incoming: int | None = None
    ) -> Live:
        """What is alive at the point with the most bytes, the first of equals.

        ``kept`` is the share of each parameter gradient that stays on this rank as a gradient of its own: 1 for a
        plain step, 0 where it is added to an earlier micro-batch's, 1/ranks where it is reduced and sharded.
        ``extra`` bytes (a recomputed layer's output, say) are alive throughout. ``recompute``: the worst point of the
        forward pass that is run again, when the gradients ``incoming`` are there: those of ``waiting`` where None.
        """
        saved = total(self.saved, sizes)
        alive = list(accumulate([sizes[number] for number in self.changes], initial=saved))
        if kept == 1:
            totals = [alive[changes] + made + done for changes, made, done in self.points]
        else:
            totals = [alive[changes] + made + int(kept * done) for changes, made, done in self.points]
        most = max(totals)
        index = totals.index(most)
        if recompute:
            waiting = alive[self.waiting] - saved if incoming is None else incoming
            again = recompute + waiting
            if again > most + extra or (again == most + extra and index >= self.past):
                return Live(recompute, temporaries=waiting)
        changes, made, done = self.points[index]
        activations, logits, casts, temporaries, _ = self.table.live((*self.saved, *self.changes[:changes]), sizes)
        stays = int(kept * made)
        return Live(activations, logits, casts, temporaries + extra + made - stays, int(kept * (done + made)))
