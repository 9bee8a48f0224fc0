"""The shapes of a head: its bytes in one micro-batch, and the same for any."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.activations.form import Backward, Changes, Live, Table, live, total


@frozen
class Head:
    """The final norm, the head and the loss of one micro-batch, in bytes.

    ``saved``: what they keep at the end of the forward pass. ``forward``: what lives beside that at the worst
    point of the forward pass. ``loss``: the worst point of the loss's backward, before the first parameter
    gradient. ``head``: the worst point of the head's own backward, with ``weights`` being its gradients.
    ``pinned``: what of ``saved`` stays until the graph goes. ``lingering``: logits that a variable of the training
    loop holds while the layers run backward. ``bare``: all of the forward's worst point where there is no graph.
    """

    saved: Live
    forward: Live
    loss: Live
    head: Live
    weights: int
    bare: Live
    pinned: int = 0
    lingering: int = 0
    made: int | None = None
    """Bytes of the logits as the head makes them, where the loss runs behind the model's forward; None where in it."""


@frozen
class Form:
    """The same for any micro-batch.

    ``logits``: of these points of the loss's forward the one with most logits counts. ``states``: the head's input, as
    far as it lives until the loss; ``hidden`` the same where nobody saves it. ``capped``: logits that only the backward
    needs. ``loss`` is None where the loss is a node of the head's. ``made``: the logits where a loss behind the model's
    forward takes them.
    """

    table: Table
    logits: tuple[Changes, ...]
    states: Changes
    hidden: Changes
    capped: Changes
    loss: Backward | None
    head: Backward
    weights: int
    made: Changes | None = None

    def at(self, batch: int, seq: int, kept: float) -> Head:
        """The head of ``batch`` sequences of ``seq`` scored tokens."""
        sizes = self.table.sizes(batch, seq)
        states = saved = at_the_loss = live(self.head.saved, sizes)
        if self.loss is not None:
            log = live(self.loss.saved, sizes)
            saved, at_the_loss = states.plus(log), states.plus(self.loss.peak(sizes, log))
        logits = max([total(point, sizes) for point in self.logits])
        return Head(
            saved,
            Live(0, logits, 0, total(self.hidden, sizes), 0),
            at_the_loss,
            self.head.peak(sizes, states, kept=kept),
            self.weights,
            Live(total(self.states, sizes), saved.logits + logits - total(self.capped, sizes)),
            made=total(self.made, sizes) if self.made is not None else None,
        )
