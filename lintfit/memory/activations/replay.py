"""Following a tape: the backward pass as the autograd engine runs it, and the forward pass that checkpointing repeats.

The engine takes the newest node first. A gradient is freed when its node has run, gradients of a tensor used twice are
added in place, saved tensors are released node by node.
"""

from __future__ import annotations

from operator import neg

from lintfit.memory.activations.form import TEMPORARY, Backward, Passed, Point, Reader, Table, reader
from lintfit.memory.activations.tape import CAST, Storage, Tape, Var

_Gradient = list[int]
"""A gradient on its way: its number in the table, and how many hold it. A plain list, as there are some fifty to a
layer: with objects and their methods in its place a backward pass took a third longer to follow."""

NUMBER, HOLDERS = range(2)


def backward(
    tape: Tape, out: Var, table: Table, *, held: bool = False, returned: tuple[Var, ...] = (), early: bool = False
) -> Backward:
    """The pass that starts with the gradient of ``out``; its points are before the first node, and at its nodes.

    A node at which nothing is allocated is no point: there was as much before. ``held``: somebody else refers to that
    gradient throughout, so that nothing is added into it: reentrant checkpointing runs the pass inside its own
    backward, whose argument it is (``torch/utils/checkpoint.py`` ``CheckpointFunction.backward``). ``returned``: what
    else the checkpointed function gives back; nobody uses it, and it and a gradient of zeros are held as well.
    ``early``: under non-reentrant checkpointing, whose second graph keeps what lingers.
    """
    kept = tape.saved()
    saved = table.numbers(kept)
    waiting, changes = _started(kept, out, table, held, returned)
    staying = {*tape.pinned, *(tape.lingering if early else ()), *([var.storage for var in returned] if held else ())}
    points: list[Point] = [(0, 0, 0)]
    past = first_saved = done = 0
    for outs, inputs, saves, first, temp, same, weights, overwritten in reversed(tape.nodes):
        incoming = []
        for var in outs:
            gradient = waiting.pop(var, None)
            if gradient is not None:
                gradient[HOLDERS] -= 1
                incoming.append(gradient)
        if saves and not first_saved:
            past, first_saved = len(points), len(changes)
        before = len(changes)
        dying: list[int] = []
        for var in inputs if incoming else ():
            if not var.grad:
                continue
            passes = same and var.item == outs[0].item
            if passes:
                gradient = incoming[0]
            else:
                gradient = [table.gradient(var), 0]
                changes.append(gradient[NUMBER])
            if var not in waiting:
                gradient[HOLDERS] += 1
                waiting[var] = gradient
            elif not _added(waiting, var, gradient, passes):
                dying.append(-gradient[NUMBER])
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
        for number, holders in incoming:
            if not holders:
                changes.append(-number)
    return Backward(table, saved, changes, points, past, first_saved)


def _started(
    kept: list[Storage], out: Var, table: Table, held: bool, returned: tuple[Var, ...]
) -> tuple[dict[Var, _Gradient], list[int]]:
    """The gradients that wait for the first node, and what is allocated by then (see :func:`backward`)."""
    start = [table.gradient(out), 2 if held else 1]
    waiting = {out: start}
    changes = [start[NUMBER]]
    for var in returned if held else ():
        zeros = [table.gradient(var), 2]
        changes.append(zeros[NUMBER])
        if var.grad:
            waiting[var] = zeros
        if var.storage not in kept:
            changes.append(table.storage(var.storage))
    return waiting, changes


def _added(waiting: dict[Var, _Gradient], var: Var, gradient: _Gradient, same: bool) -> bool:
    """Add a gradient to the one that waits for the node that made ``var``; False where it is freed at once."""
    waits = waiting[var]
    if waits[HOLDERS] > 1 and not same:
        # The engine adds in place only into a buffer that nobody else holds (InputBuffer::accumulate).
        waits[HOLDERS] -= 1
        gradient[HOLDERS] += 1
        waiting[var] = gradient
    elif gradient[HOLDERS] == 0 and not same:
        return False
    return True


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
        if saves > 1:
            early = len(points), len(changes)
        loose = needed
        points.append(len(changes))
    before, last = early
    return Passed(changes, points, [*points[:before], last])


def _holding(own: list[Storage], held: tuple[Var, ...]) -> list[Storage]:
    """The storages of what is held, each once."""
    return list(dict.fromkeys([*own, *[var.storage for var in held if not var.storage.external]]))


def late_copies(tape: Tape) -> list[Storage]:
    """The copies of weights that autocast makes for its cache in a pass without a graph."""
    return [step[0].storage for step in tape.steps if step[0].storage.kind == CAST and step[0].storage.external]


def bare(tape: Tape, x: Var, table: Table) -> tuple[tuple[Reader, Reader], ...]:
    """What is there behind each operation of a watched forward pass without a graph, less the copies for autocast's
    cache that are not made yet; and these.

    A result is there from the operation that makes it to the last one that reads it, and as long as it is held.
    """
    number = table.storage
    own = [] if x.storage.external else [x.storage]
    last = {var.storage: index for index, step in enumerate(tape.steps) for var in step[1]}
    later = {storage: number(storage) for storage in late_copies(tape)}
    alive: dict[Storage, int] = {}
    held: tuple[Var, ...] = ()
    holding = {storage: number(storage) for storage in own}
    points: dict[tuple[tuple[int, ...], tuple[int, ...]], None] = {}
    for index, (out, inputs, now_held, _, _) in enumerate(tape.steps):
        if now_held is not held:
            held, holding = now_held, {storage: number(storage) for storage in _holding(own, now_held)}
        for var in (*inputs, out):
            storage = var.storage
            if not storage.external and storage not in alive:
                alive[storage] = number(storage)
        later.pop(out.storage, None)
        missing = tuple(later.values())
        points[(*(alive | holding).values(), *map(neg, missing)), missing] = None
        for var in (*inputs, out):
            if last.get(var.storage, 0) <= index:
                alive.pop(var.storage, None)
    return tuple([(reader(counted), reader(missing)) for counted, missing in points])
