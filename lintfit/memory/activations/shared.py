"""Parameters that several layers share (Zamba), and the embeddings, which these layers see once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import CAST, Node, Storage, Var, once
from lintfit.memory.activations.traits import Turn


def embeddings(t: Layer, x: Var) -> Var:
    """The embeddings beside the stream ``x``, which somebody else counts.

    A frozen table's have a gradient where checkpointing asks for one.
    """
    found = t.like(x, x.width, x.item, not t.recipe.frozen or x.storage.external)
    found.storage.external = True
    return found


class Sharing:
    """What becomes of a layer's parameter gradients where the parameters are other layers', too.

    The engine adds them up before the parameter gets its gradient: that of the last layer, the first to run backward,
    waits, those of the others are added to it. A product's gradient is a transposed view, which the engine does not
    add into: the first sum is a third tensor. Under autocast the sums are those of the half-precision copy, which is
    one for all of these layers, and cast when all are there. Reentrant checkpointing runs each layer's backward for
    itself (``alone``), by a copy of its own, and adds in place into the gradient that the parameter has.
    ``within``: they are one layer's, which takes them several times.
    """

    def __init__(self, t: Layer, turn: Turn | None, *, alone: bool = False, within: bool = False) -> None:
        self._t = t
        single = turn is None or (turn.first and not turn.behind)
        self._turn = None if single or (t.recipe.frozen and not within) else turn
        self._alone = alone
        self._within = within

    def of(self, write: Callable[[], Var]) -> Var:
        """What ``write`` puts on the tape, with the gradients of its parameters as they are shared."""
        t, turn = self._t, self._turn
        if turn is None:
            return write()
        nodes, steps = len(t.nodes), len(t.steps)
        out = write()
        if not turn.first and (self._within or not (t.graph and (t.early or self._alone))):
            self._without_copies(nodes, steps)
        written = t.nodes[nodes:]
        copies = [node[0][0] for node in written if node[6] and node[0][0].storage.kind == CAST]
        if copies and not self._alone:
            t.nodes[nodes:] = self._of_copies(written, copies, turn)
        elif turn.behind:
            t.nodes[nodes:] = [each for node in written for each in self._added(node, turn)]
        return out

    def _without_copies(self, nodes: int, steps: int) -> None:
        """Leave out the copies of weights that autocast has in its cache since the first of the layers."""
        t = self._t
        made = [step[0].storage for step in t.steps[steps:]] + [node[0][0].storage for node in t.nodes[nodes:]]
        copies = {storage for storage in made if storage.kind == CAST}
        t.forget(copies)
        for storage in copies:
            storage.external = True
        t.steps[steps:] = [
            (out, inputs, held, saves, _less(first, copies))
            for out, inputs, held, saves, first in t.steps[steps:]
            if out.storage not in copies
        ]
        t.nodes[nodes:] = [(*node[:3], _less(node[3], copies), *node[4:]) for node in t.nodes[nodes:]]

    def _added(self, node: Node, turn: Turn) -> list[Node]:
        """A node whose parameter gradients are added to those that there are."""
        outs, inputs, saves, first, temp, same, weights, taken = node
        if not weights:
            return [node]
        self._t.weights -= sum(weights)
        made = [Var(size, 1, once, Storage(size, once), True) for size in weights]
        rest = outs, (*inputs, *made), saves, first, temp, same, (), taken
        return [*(self._sum(gradient, turn) for gradient in made), rest]

    def _sum(self, gradient: Var, turn: Turn) -> Node:
        """Where a gradient is added to the one that waits."""
        apart = turn.behind == 1 and not self._alone
        return (gradient,), (), False, (), (gradient.scratch(gradient.item),) if apart else (), False, (), ()

    def _of_copies(self, written: list[Node], copies: list[Var], turn: Turn) -> list[Node]:
        """The same of products by half-precision copies of weights."""
        t = self._t
        found: list[Node] = []
        for node in written:
            outs, _, saves, first, temp, same, weights, taken = node
            if outs[0] not in copies:
                found += self._added(node, turn) if turn.behind else [node]
                continue
            size = outs[0].storage.bytes
            t.weights -= sum(weights)
            if turn.first:  # the sum is cast, and goes
                made = sum(weights) - size
                t.weights += made
                found.append(((), (), saves, first, (*temp, (size, once)), same, (made,), taken))
            if turn.behind:
                found.append(self._sum(outs[0], turn))
            else:
                t.weights += size
        return found


def _less(first: Sequence[Storage], copies: set[Storage]) -> list[Storage]:
    """Storages that are none of these copies."""
    return [storage for storage in first if storage not in copies]
