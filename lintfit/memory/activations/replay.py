"""Following a tape: the backward pass as the autograd engine runs it, and the forward pass that checkpointing repeats.

The engine takes the newest node first. A gradient is freed when its node has run, gradients of a tensor used twice are
added in place, saved tensors are released node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import sub

from lintfit.memory.activations.form import TEMPORARY, Amounts, Backward, Point, Table, highest, uncovered
from lintfit.memory.activations.tape import LOGITS, Node, Storage, Tape, Var


class _Gradient:
    """A gradient on its way: the column of its size, how much of it, and how many tensors it is the gradient of."""

    __slots__ = ("amount", "column", "refs")

    def __init__(self, part: tuple[int, int]) -> None:
        self.column, self.amount = part
        self.refs = 0


def backward(tape: Tape, out: Var, table: Table) -> Backward:
    """The points of the pass that starts with the gradient of ``out``: before the first node, and at each."""
    first = _Gradient(_column(table, out))
    first.refs = 1
    outgoing = [[_column(table, var) for var in node.inputs] for node in tape.nodes]
    scratch = [[table.column(TEMPORARY, size, per, False) for size, per in node.temp] for node in tape.nodes]
    columns = {storage: table.storage(storage) for storage in tape.saved()}
    users = _users(tape)
    saved = table.amounts(columns.values())
    alive = list(saved)
    points = [Point(table.together(saved), 0, 0, saved)]
    alive[first.column] += first.amount
    pending: dict[Var, _Gradient] = {out: first}
    waiting: Amounts = ()
    before: list[Point] = []
    done = 0
    for node, sizes, temporary in zip(reversed(tape.nodes), reversed(outgoing), reversed(scratch), strict=True):
        incoming = _taken(pending, node)
        if not waiting and node.saved:
            waiting = table.together(tuple(map(sub, alive, saved)))
            before, points = points, []
        gradients: list[_Gradient] = []
        if incoming:
            gradients = [incoming[0] if node.same else _Gradient(part) for part in sizes]
        if not node.same:
            for gradient in gradients:
                alive[gradient.column] += gradient.amount
        made = sum(node.weights)
        there = _with(alive, temporary, [columns[storage] for storage in node.overwritten])
        points.append(Point(table.together(there), made, done, there))
        done += made
        for storage in node.saved:
            if not storage.external:
                users[storage] -= 1
                if not users[storage]:
                    column, amount = columns[storage]
                    alive[column] -= amount
        for var, gradient in zip(node.inputs, gradients, strict=bool(gradients)):
            if not _handed_on(pending, var, gradient, node.same):
                alive[gradient.column] -= gradient.amount
        for gradient in incoming:
            if not gradient.refs:
                alive[gradient.column] -= gradient.amount
    return Backward(table, highest(before), highest(points), waiting)


def _column(table: Table, var: Var) -> tuple[int, int]:
    """The column of a tensor's gradient, and how much of it."""
    kind = LOGITS if var.storage.kind == LOGITS else TEMPORARY
    return table.column(kind, var.width * var.item, var.per)


def _users(tape: Tape) -> dict[Storage, int]:
    """How many times each storage is saved; what is pinned outlives the pass."""
    users: dict[Storage, int] = dict.fromkeys(tape.pinned, 1)
    for node in tape.nodes:
        for storage in node.saved:
            users[storage] = users.get(storage, 0) + 1
    return users


def _taken(pending: dict[Var, _Gradient], node: Node) -> list[_Gradient]:
    """The gradients that a node takes in."""
    taken = []
    for var in node.outs:
        gradient = pending.pop(var, None)
        if gradient is not None:
            gradient.refs -= 1
            taken.append(gradient)
    return taken


def _with(alive: list[int], more: Sequence[tuple[int, int]], less: Sequence[tuple[int, int]] = ()) -> Amounts:
    """What is alive with more and less."""
    found = alive.copy()
    for column, amount in more:
        found[column] += amount
    for column, amount in less:
        found[column] -= amount
    return tuple(found)


def _handed_on(pending: dict[Var, _Gradient], var: Var, gradient: _Gradient, same: bool) -> bool:
    """Leave a gradient for the node that made ``var``; False where it is freed at once, added to one that waits."""
    held = pending.get(var)
    if held is None:
        gradient.refs += 1
        pending[var] = gradient
    elif held.refs > 1 and not same:
        # The engine adds in place only into a buffer that nobody else holds (InputBuffer::accumulate).
        held.refs -= 1
        gradient.refs += 1
        pending[var] = gradient
    elif gradient.refs == 0 and not same:
        return False
    return True


class Forward:
    """A watched forward pass, followed when somebody asks for its points: most layers' pass is never the peak.

    ``everything``: all that is made, read or held in it, which no point of it exceeds.
    """

    __slots__ = ("_found", "_table", "_tape", "_x", "everything")

    def __init__(self, tape: Tape, x: Var, table: Table) -> None:
        self._tape, self._x, self._table = tape, x, table
        self._found: tuple[list[Amounts], list[Amounts]] | None = None
        storages = {var.storage for step in tape.steps for var in (step.out, *step.inputs, *step.held)} | {x.storage}
        self.everything = table.together(table.amounts(map(table.storage, storages.union(tape.saved()))))

    def points(self) -> list[Amounts]:
        """What may be alive at the worst point of the pass."""
        return self._followed()[0]

    def early(self) -> list[Amounts]:
        """The same of the part up to the last tensor saved, where non-reentrant checkpointing stops to recompute."""
        return self._followed()[1]

    def _followed(self) -> tuple[list[Amounts], list[Amounts]]:
        if self._found is None:
            self._found = forward(self._tape, self._x, self._table)
        return self._found


def forward(tape: Tape, x: Var, table: Table) -> tuple[list[Amounts], list[Amounts]]:
    """What may be alive at the worst point of a watched forward pass, and of its part up to the last tensor saved.

    After an operation these are what is saved so far, what is held (``x``, the layer's input, by the model's loop), and
    its own inputs and result. Non-reentrant checkpointing stops to recompute at the last tensor saved
    (``torch/utils/checkpoint.py``, ``_StopRecomputationError``).
    """
    storages = {var.storage for step in tape.steps for var in (step.out, *step.inputs, *step.held)} | {x.storage}
    storages.update(tape.saved())
    columns = {storage: table.storage(storage) for storage in storages}
    kept = list(table.amounts(()))
    seen: set[Storage] = set()
    after: list[Amounts] = []
    early: list[Amounts] = []
    for step in tape.steps:
        for storage in (*step.saved, *step.pinned):
            if storage not in seen and not storage.external:
                seen.add(storage)
                column, amount = columns[storage]
                kept[column] += amount
        loose = {var.storage for var in (x, *step.inputs, *step.held)} - seen
        counted = [columns[storage] for storage in loose if not storage.external]
        if step.saved:
            early = [*after, table.together(_with(kept, counted))]
        made = step.out.storage
        if made not in seen and made not in loose:
            counted.append(columns[made])
        after.append(table.together(_with(kept, counted)))
    return uncovered(after), uncovered(early)
