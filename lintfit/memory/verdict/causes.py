"""What makes the range around a peak wide: each thing that a spec leaves open, with the bytes that it decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lintfit.frozen import names
from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.states import States
from lintfit.memory.moments import moments
from lintfit.memory.result import ALLOCATED, Moment
from lintfit.memory.spec import Spec
from lintfit.memory.verdict.alternatives import Alternative, cheaper, dearer
from lintfit.memory.verdict.headroom import held_chunks, planned

GAPS = "gaps"
"""What stands for the caching allocator, whose gaps no setting decides."""


class Cause(NamedTuple):
    """Something open, and the bytes by which the peak is more (or less, below 0) where it is not as it is taken.

    ``names`` are fields of the spec, libraries of its ``versions``, or :data:`GAPS`.
    """

    names: tuple[str, ...]
    bytes: int


def causes(spec: Spec) -> tuple[Cause, ...]:
    """The causes of a spec's range, the largest first."""
    held = states(spec)
    points = moments(spec, held)[0]
    peak = _peak(points)
    found = [*_alternatives(spec, held, peak), Cause((GAPS,), planned(spec, points, held, held_chunks(spec)) - peak)]
    return tuple(sorted((each for each in found if each.bytes), key=lambda each: -abs(each.bytes)))


def _alternatives(spec: Spec, held: States, peak: int) -> Iterator[Cause]:
    for other in dearer(spec):
        yield Cause(_open(spec, other), max(_of(other, held) - peak, 0))
    for other in cheaper(spec):
        yield Cause(_open(spec, other), min(_of(other, held) - other.less - peak, 0))


def _of(other: Alternative, held: States) -> int:
    return _peak(moments(other.spec, states(other.spec) if other.restated else held)[0])


def _peak(points: tuple[Moment, ...]) -> int:
    return max(points, key=ALLOCATED).allocated


def _open(spec: Spec, other: Alternative) -> tuple[str, ...]:
    """What the other run states otherwise."""
    differing = [name for name in names(Spec) if getattr(spec, name) != getattr(other.spec, name)]
    if "versions" not in differing or len(differing) > 1:
        return tuple(name for name in differing if name not in ("versions", "stated"))
    both = spec.versions.keys() | other.spec.versions.keys()
    return tuple(sorted(name for name in both if spec.versions.get(name) != other.spec.versions.get(name)))
