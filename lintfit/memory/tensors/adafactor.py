"""The step of transformers' Adafactor, which works on one tensor after the other in fp32."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lintfit.frozen import frozen
from lintfit.memory.tensors.parameters import Weight, rounded


@frozen
class Turn:
    """What the step holds at the turn of ``weight``: ``own`` bytes of copies, and the update of ``before``."""

    weight: Weight
    own: int
    before: Weight | None

    @property
    def left(self) -> int:
        """Bytes of the update of the tensor before."""
        return _fp32(self.before) if self.before is not None else 0

    @property
    def total(self) -> int:
        return self.own + self.left


def worst(weights: Iterable[Weight]) -> Turn | None:
    """The turn that takes most; None where nothing is trained.

    At its start there are the square of the gradient and the sum of that and eps, beside them fp32 copies of gradient
    and parameter where these are not fp32. The loop's variable for the update still has that of the tensor before
    (transformers ``optimization.py:Adafactor.step``; ``bench.combinations``).
    """
    trained = [weight for weight in weights if weight.trainable]
    groups = [w for w in trained if w.decays], [w for w in trained if not w.decays]
    turns = [
        Turn(weight, (2 if weight.dtype == "fp32" else 4) * _fp32(weight), before)
        for group in groups
        for weight, before in _in_turn(group)
    ]
    return max(turns, key=lambda turn: turn.total, default=None)


def _in_turn(group: Sequence[Weight]) -> Iterator[tuple[Weight, Weight | None]]:
    """Every kind of tensor with the largest that may come before it: layers follow each other."""
    for index, weight in enumerate(group):
        before = [*group[max(index - 1, 0) : index]]
        if weight.copies > 1 and (index == 0 or _block(group[index - 1]) != _block(weight)):
            before += [other for other in group[index:] if _block(other) == _block(weight)][-1:]
        yield weight, max(before, key=_fp32, default=None)


def _block(weight: Weight) -> str:
    """What stands before the number of a layer."""
    return weight.name.partition("{}")[0]


def _fp32(weight: Weight) -> int:
    return rounded(4 * weight.numel)
