"""Following a tape: the backward pass as the autograd engine runs it, and the forward pass that checkpointing repeats.

The engine takes the newest node first. A gradient is freed when its node has run, gradients of a tensor used twice are
added in place, saved tensors are released node by node.
"""

from __future__ import annotations

from collections.abc import Sequence

from lintfit.memory.activations.form import TEMPORARY, Backward, Passed, Point, Reader, Table, reader
from lintfit.memory.activations.tape import Storage, Tape, Var


class _Gradient:
    """A gradient on its way: its number in the table, and how many hold it."""

    __slots__ = ("holders", "number")

    def __init__(self, number: int, holders: int = 0) -> None:
        self.number = number
        self.holders = holders


class _Engine:
    """Autograd's engine at work: the gradients that wait for the node that made their tensor, and what has been
    allocated and freed so far."""

    __slots__ = ("changes", "table", "waiting")

    def __init__(self, table: Table) -> None:
        self.table = table
        self.waiting: dict[Var, _Gradient] = {}
        self.changes: list[int] = []

    def take(self, outs: Sequence[Var]) -> list[_Gradient]:
        """The gradients that have come in for a node's results; it holds them no longer once it has run."""
        found = []
        for var in outs:
            gradient = self.waiting.pop(var, None)
            if gradient is not None:
                gradient.holders -= 1
                found.append(gradient)
        return found

    def hand_on(self, inputs: Sequence[Var], passed: _Gradient, item: int | None) -> list[int]:
        """Make the gradients of a node's inputs; what is freed when it has run.

        ``item``: bytes of an element of tensors that get the gradient ``passed`` as it is, if any do.
        """
        dying = []
        for var in inputs:
            if not var.grad:
                continue
            same = var.item == item
            gradient = passed
            if not same:
                gradient = _Gradient(self.table.gradient(var))
                self.changes.append(gradient.number)
            if var not in self.waiting:
                gradient.holders += 1
                self.waiting[var] = gradient
            elif not self._added(var, gradient, same):
                dying.append(-gradient.number)
        return dying

    def _added(self, var: Var, gradient: _Gradient, same: bool) -> bool:
        """Add a gradient to the one that waits for the node that made ``var``; False where it is freed at once."""
        waits = self.waiting[var]
        if waits.holders > 1 and not same:
            # The engine adds in place only into a buffer that nobody else holds (InputBuffer::accumulate).
            waits.holders -= 1
            gradient.holders += 1
            self.waiting[var] = gradient
        elif gradient.holders == 0 and not same:
            return False
        return True


def backward(tape: Tape, out: Var, table: Table, *, held: bool = False, returned: tuple[Var, ...] = ()) -> Backward:
    """The pass that starts with the gradient of ``out``; its points are before the first node, and at its nodes.

    A node at which nothing is allocated is no point: there was as much before. ``held``: somebody else refers to that
    gradient throughout, so that nothing is added into it: reentrant checkpointing runs the pass inside its own
    backward, whose argument it is (``torch/utils/checkpoint.py`` ``CheckpointFunction.backward``). ``returned``: what
    else the checkpointed function gives back; nobody uses it, and it and a gradient of zeros are held as well.
    """
    kept = tape.saved()
    saved = table.numbers(kept)
    engine = _started(kept, out, table, held, returned)
    staying = {*tape.pinned, *([var.storage for var in returned] if held else ())}
    changes = engine.changes
    points: list[Point] = [(0, 0, 0)]
    past = waiting = done = 0
    for outs, inputs, saves, first, temp, same, weights, overwritten in reversed(tape.nodes):
        incoming = engine.take(outs)
        if saves and not waiting:
            past, waiting = len(points), len(changes)
        before = len(changes)
        dying = engine.hand_on(inputs, incoming[0], outs[0].item if same else None) if incoming else []
        for size, per in temp:
            number = table.number(TEMPORARY, size, per, False)
            changes.append(number)
            dying.append(-number)
        made = sum(weights) if weights else 0
        if made or len(changes) > before:
            taken = table.numbers(overwritten) if overwritten else ()
            for number in taken:
                changes.append(-number)
            points.append((len(changes), made, done))
            changes += taken
            done += made
        changes += dying
        for storage in first:
            if storage not in staying:
                changes.append(-table.storage(storage))
        for gradient in incoming:
            if not gradient.holders:
                changes.append(-gradient.number)
    return Backward(table, table.alive(saved), changes, points, past, waiting, reader(changes))


def _started(kept: list[Storage], out: Var, table: Table, held: bool, returned: tuple[Var, ...]) -> _Engine:
    """The engine with what is there before the first node beside what is saved (see :func:`backward`)."""
    engine = _Engine(table)
    engine.waiting[out] = _Gradient(table.gradient(out), 2 if held else 1)
    engine.changes.append(engine.waiting[out].number)
    for var in returned if held else ():
        zeros = _Gradient(table.gradient(var), 2)
        engine.changes.append(zeros.number)
        if var.grad:
            engine.waiting[var] = zeros
        if var.storage not in kept:
            engine.changes.append(table.storage(var.storage))
    return engine


def forward(tape: Tape, x: Var, table: Table) -> Passed:
    """What a watched forward pass allocates and frees.

    After an operation there is what is saved so far, what is held (``x``, the layer's input, by the model's loop), and
    its own inputs and result. Non-reentrant checkpointing stops to recompute at the last tensor saved
    (``torch/utils/checkpoint.py``, ``_StopRecomputationError``).
    """
    saved: set[Storage] = set()
    own = [] if x.storage.external else [x.storage]
    held: tuple[Var, ...] = ()
    holding = own
    loose: list[Storage] = []
    changes: list[int] = []
    points: list[int] = []
    early = 0, 0
    for out, inputs, now_held, saves, first in tape.steps:
        if now_held is not held:
            held, holding = now_held, _holding(own, now_held)
        saved.update(first)
        needed = [storage for storage in holding if storage not in saved]
        for var in inputs:
            storage = var.storage
            if storage not in saved and storage not in needed and not storage.external:
                needed.append(storage)
        for storage in loose:
            if storage not in needed and storage not in first:
                changes.append(-table.storage(storage))
        for storage in (*needed, *first):
            if storage not in loose:
                changes.append(table.storage(storage))
        if saves:
            early = len(points), len(changes)
        made = out.storage
        if made not in saved and made not in needed:
            changes.append(table.storage(made))
            needed.append(made)
        loose = needed
        points.append(len(changes))
    before, last = early
    return Passed(reader(changes), points, [*points[:before], last])


def _holding(own: list[Storage], held: tuple[Var, ...]) -> list[Storage]:
    """The storages of what is held, each once."""
    return list(dict.fromkeys([*own, *[var.storage for var in held if not var.storage.external]]))


def bare(tape: Tape, x: Var, table: Table) -> tuple[Reader, ...]:
    """What is there behind each operation of a watched forward pass without a graph: see :func:`forward`."""
    number = table.storage
    own = [] if x.storage.external else [x.storage]
    held: tuple[Var, ...] = ()
    holding = {storage: number(storage) for storage in own}
    points: dict[tuple[int, ...], None] = {}
    for out, inputs, now_held, _, _ in tape.steps:
        if now_held is not held:
            held, holding = now_held, {storage: number(storage) for storage in _holding(own, now_held)}
        there = dict(holding)
        for var in inputs:
            storage = var.storage
            if not storage.external and storage not in there:
                there[storage] = number(storage)
        there[out.storage] = number(out.storage)
        points[tuple(there.values())] = None
    return tuple(map(reader, points))
