"""From a spec to an estimate: the moments of a step, the range around the largest, and the verdict."""

from __future__ import annotations

from dataclasses import replace

from lintfit.memory.framework import framework
from lintfit.memory.moments import moments
from lintfit.memory.result import Estimate, Moment, Range, Verdict
from lintfit.memory.spec import Spec
from lintfit.memory.states import states


def estimate(spec: Spec) -> Estimate:
    """The memory of one rank of a run, and whether it fits its card."""
    held = states(spec)
    points = moments(spec, held)
    allocated = max(moment.allocated for moment in points)
    beside, assumed = framework(spec, allocated, held)
    points = tuple(_with_framework(moment, beside.likely) for moment in points)
    bounds = Range(allocated + beside.low, allocated + beside.likely, allocated + beside.high)
    return Estimate(
        peak=bounds,
        moments=points,
        verdict=verdict(bounds, spec.capacity_bytes),
        capacity_bytes=spec.capacity_bytes,
        host=held.host,
        host_capacity_bytes=spec.host_memory_bytes,
        assumptions=(*held.assumptions, *assumed),
        not_modelled=held.not_modelled,
    )


def _with_framework(moment: Moment, size: int) -> Moment:
    return replace(moment, components={**moment.components, "framework": size})


def verdict(bounds: Range, capacity: int | None) -> Verdict:
    """``fits`` where the high end fits the card, ``does-not-fit`` where the low end does not, else ``tight``."""
    if capacity is None:
        return Verdict.UNKNOWN
    if bounds.high <= capacity:
        return Verdict.FITS
    return Verdict.DOES_NOT_FIT if bounds.low > capacity else Verdict.TIGHT
