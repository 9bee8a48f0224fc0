"""Gradients that are there beyond the parameters' own at the end of a backward pass."""

from __future__ import annotations

from lintfit.memory.parameters import Inventory, rounded
from lintfit.memory.spec import Spec


def largest_gradient(held: Inventory) -> int:
    """Bytes of the largest single gradient."""
    return max((rounded(weight.storage) for weight in held.trainables), default=0)


def tied_gradient(spec: Spec, held: Inventory) -> int:
    """Bytes beyond the gradients themselves when a tied embedding gets its gradient, the last of the backward.

    The head's share waits in the engine until the embedding's backward. Under autocast the two are summed in
    place: one more copy. In pure half or full precision the waiting gradient is a transposed view, so the
    engine sums out of place: two more (reference: torch's own count under fake tensors).
    """
    if not spec.facts.tied:
        return 0
    embedding = max((w.storage for w in held.trainables if w.role == "embedding"), default=0)
    return rounded(embedding) * (1 if spec.mixed_precision != "no" and spec.engine != "deepspeed" else 2)
