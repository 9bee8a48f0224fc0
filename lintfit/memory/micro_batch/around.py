"""What lies around a model's layers in a micro-batch, in bytes: the one shape of all that features add to a step."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import NamedTuple

from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.stream import Shape


class Around(NamedTuple):
    """What one feature of a model takes outside of the layers.

    Until the end of the backward: ``kept`` in any case, ``graphed`` by a graph alone, ``casts`` by it of the copies of
    weights that autocast's cache has during the forward. While the layers run forward: ``named``, what the model's
    forward has names for, and ``named_kept``, what of it is kept as well; ``summands``, what the first layer's input is
    made of, which has names, too, and ``summands_kept``. ``waiting``: gradients, beside each layer while it runs
    backward; empty where there are none. ``bare``: throughout a forward without a graph alone. As long as the model is
    there: ``buffers``.
    """

    kept: int = 0
    graphed: int = 0
    casts: int = 0
    named: int = 0
    named_kept: int = 0
    summands: int = 0
    summands_kept: int = 0
    waiting: tuple[int, ...] = ()
    bare: int = 0
    buffers: int = 0

    def plus(self, other: Around) -> Around:
        """Both features together."""
        mine, others = self.waiting, other.waiting
        waiting = tuple(map(add, mine, others)) if mine and others else mine or others
        return Around(*map(add, self, other))._replace(waiting=waiting)


NOTHING = Around()


class Feature(NamedTuple):
    """Something that only some models do around their layers: whether a run does, and what it takes where it does."""

    has: Callable[[Model], bool]
    takes: Callable[[Model, Shape], Around]

    def around(self, model: Model, shape: Shape) -> Around:
        """What it takes in a micro-batch of any model."""
        return self.takes(model, shape) if self.has(model) else NOTHING
