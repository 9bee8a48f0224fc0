"""Closed forms of a tape: what comes and goes in its passes, tensor by tensor, for any micro-batch.

Which tensors are alive at a point does not depend on their sizes. A tape is therefore followed once
(:mod:`.replay`), and a micro-batch's numbers only have to be filled in. All sizes are bytes of one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import add, itemgetter, mul, neg

from lintfit.frozen import frozen
from lintfit.memory.activations.tape import BLOCK, LOGITS, Extent, Storage, Var, rounded

TEMPORARY = 3
"""The kind of gradients on their way and of scratch; the other kinds are a storage's."""

Changes = Sequence[int]
"""Numbers of a table in the order of a pass: one above zero is allocated, its opposite freed."""

Sizes = list[int]
"""Bytes of every number of a table for one micro-batch; the opposite number, as an index from the end, has the opposite
size."""

Reader = Callable[[Sizes], tuple[int, ...]]
"""Reads the sizes of several numbers at once."""


Alive = tuple[Reader, ...]
"""Reads the sizes of what is there at one point, by kind."""


def reader(numbers: Changes) -> Reader:
    """What reads the sizes of these numbers, between two of nothing."""
    return itemgetter(0, *numbers, 0)


@frozen
class Live:
    """Bytes alive at one point of a backward pass, by what they are."""

    activations: int = 0
    logits: int = 0
    casts: int = 0
    temporaries: int = 0
    gradients: int = 0

    @property
    def total(self) -> int:
        return self.activations + self.logits + self.casts + self.temporaries + self.gradients

    def plus(self, other: Live, times: int = 1) -> Live:
        """This, and so many times the other."""
        if other is NOTHING:
            return self
        return Live(
            self.activations + times * other.activations,
            self.logits + times * other.logits,
            self.casts + times * other.casts,
            self.temporaries + times * other.temporaries,
            self.gradients + times * other.gradients,
        )


NOTHING = Live()


class Table:
    """The tensors of a tape, numbered from 1 on: all of one kind and size have one number."""

    __slots__ = ("_bytes", "_extents", "_kinds", "_numbers", "_per", "_storages", "_uneven")

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int, Extent, bool], int] = {}
        self._storages: dict[Storage, int] = {}
        self._extents: dict[Extent, int] = {}
        self._kinds = [0]
        self._bytes = [0]
        """Of each number the bytes for each of its extent."""
        self._per = [0]
        """Of each number the extent's, from 1 on."""
        self._uneven: list[int] = []
        """The numbers that come in whole blocks of the allocator, but are none for each of their extent."""

    def number(self, kind: int, size: int, per: Extent, rounds: bool = True) -> int:
        """The number of ``size`` bytes for each of ``per``.

        ``rounds``: whether they come in whole blocks of the allocator.
        """
        key = kind, size, per, rounds
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._kinds)
            self._kinds.append(kind)
            self._bytes.append(size)
            self._per.append(self._extents.setdefault(per, len(self._extents) + 1))
            if rounds and size % BLOCK:
                self._uneven.append(found)
        return found

    def storage(self, storage: Storage) -> int:
        """The number of a storage."""
        found = self._storages.get(storage)
        if found is None:
            found = self._storages[storage] = self.number(storage.kind, storage.bytes, storage.per)
        return found

    def numbers(self, storages: Iterable[Storage]) -> Changes:
        """The numbers of several storages."""
        known, number = self._storages.get, self.storage
        return [known(storage) or number(storage) for storage in storages]

    def gradient(self, var: Var) -> int:
        """The number of a tensor's gradient."""
        kind = LOGITS if var.storage.kind == LOGITS else TEMPORARY
        found = self._numbers.get((kind, var.width * var.item, var.per, True))
        return found if found is not None else self.number(kind, var.width * var.item, var.per)

    def close(self) -> None:
        """Let go of what only numbering takes, most of a table: nothing more is numbered."""
        self._numbers.clear()
        self._storages.clear()

    def sizes(self, batch: int, seq: int) -> Sizes:
        """The sizes for ``batch`` sequences of ``seq`` tokens."""
        counts = [0, *[per(batch, seq) for per in self._extents]]
        sizes = list(map(mul, self._bytes, map(counts.__getitem__, self._per)))
        for number in self._uneven:
            sizes[number] = rounded(sizes[number])
        return [*sizes, *map(neg, sizes[:0:-1])]

    def alive(self, changes: Iterable[int]) -> Alive:
        """What is there once these changes are made."""
        left: dict[int, int] = {}
        for number in changes:
            if number > 0:
                left[number] = left.get(number, 0) + 1
            else:
                left[-number] -= 1
        found: tuple[list[int], ...] = ([], [], [], [])
        for number, count in left.items():
            found[self._kinds[number]].extend([number] * count)
        return tuple(map(reader, found))


def live(alive: Alive, sizes: Sizes) -> Live:
    """Bytes of what is there, by kind."""
    activations, logits, casts, temporaries = alive
    return Live(sum(activations(sizes)), sum(logits(sizes)), sum(casts(sizes)), sum(temporaries(sizes)))


def total(numbers: Changes, sizes: Sizes) -> int:
    """Bytes of these numbers."""
    return sum([sizes[number] for number in numbers])


class Passed:
    """What a watched forward pass allocates and frees.

    A point is how many of the ``changes`` are made by then. ``points``: behind every operation. ``early``: those of
    them that non-reentrant checkpointing reaches when it runs the pass again.
    """

    __slots__ = ("_changes", "_early", "_points")

    def __init__(self, changes: Changes, points: Sequence[int], early: Sequence[int]) -> None:
        self._changes = reader(changes)
        self._points = reader(points)
        self._early = reader(early)

    def peak(self, sizes: Sizes, *, early: bool = False) -> int:
        """Bytes at the worst point, 0 where there is none."""
        there = list(accumulate(self._changes(sizes)))
        return max(self._early(there) if early else self._points(there))


Point = tuple[int, int, int]
"""One point of a backward pass: how many of its changes are made by then, and bytes of the parameter gradients that are
made at it, and of those made before."""


class Backward:
    """What a backward pass allocates and frees beside what is ``saved`` when it begins.

    The first of the ``points`` is before any of the ``changes``. A checkpointed layer is run again when the first of
    its nodes asks for a saved tensor: the ``past`` first points are over then, and beside that forward pass is alive
    what the changes up to the ``waiting``-th left.
    """

    __slots__ = (
        "_at",
        "_changes",
        "_gradients",
        "_numbers",
        "_past",
        "_reached",
        "_read",
        "_table",
        "_waiting",
        "points",
        "saved",
    )  # fmt: skip

    def __init__(
        self, table: Table, saved: Changes, changes: Changes, points: Sequence[Point], past: int, waiting: int
    ) -> None:
        self._table = table
        self._numbers = saved
        self._changes = changes
        self._past = past
        self._waiting = waiting
        self._read = reader(changes)
        self._reached = reader([behind for behind, _, _ in points[1:]])
        """Reads what the changes come to at every point, and nothing behind the last."""
        self._gradients = [made + done for _, made, done in points]
        self._at: dict[int, Alive] = {}
        """What is there at the points that were the peak of a micro-batch."""
        self.saved = table.alive(saved)
        self.points = points

    def peak(
        self,
        sizes: Sizes,
        saved: Live,
        *,
        kept: float = 1.0,
        extra: int = 0,
        recompute: int = 0,
        incoming: int | None = None,
    ) -> Live:
        """What is alive at the point with the most bytes, the first of equals.

        ``saved``: bytes of what is saved. ``kept`` is the share of each parameter gradient that stays on this rank as
        a gradient of its own: 1 for a plain step, 0 where it is added to an earlier micro-batch's, 1/ranks where it is
        reduced and sharded. ``extra`` bytes (a recomputed layer's output, say) are alive throughout. ``recompute``: the
        worst point of the forward pass that is run again, when the gradients ``incoming`` are there: those of
        ``waiting`` where None.
        """
        there = list(accumulate(self._read(sizes)))
        gradients = self._gradients if kept == 1 else [made + int(kept * done) for _, made, done in self.points]
        totals = list(map(add, gradients, self._reached(there)))
        largest = max(totals)
        index = totals.index(largest)
        if recompute:
            waiting = there[self._waiting] if incoming is None else incoming
            again, most = recompute + waiting, largest + saved.total + extra
            if again > most or (again == most and index >= self._past):
                return Live(recompute, temporaries=waiting)
        _, made, done = self.points[index]
        found = live(self._there(index), sizes)
        stays = int(kept * made)
        passing = found.temporaries + extra + made - stays
        return Live(found.activations, found.logits, found.casts, passing, int(kept * (done + made)))

    def _there(self, index: int) -> Alive:
        """What is there at a point."""
        found = self._at.get(index)
        if found is None:
            changes = self._changes[: self.points[index][0]]
            found = self._at[index] = self._table.alive([*self._numbers, *changes])
        return found
