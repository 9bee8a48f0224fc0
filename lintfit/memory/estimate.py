"""From a spec to an estimate: the moments of a step, the range around the largest, and the verdict."""

from __future__ import annotations

from lintfit.memory.moments import moments
from lintfit.memory.result import Estimate, Range, Verdict
from lintfit.memory.spec import Spec
from lintfit.memory.states import states


def estimate(spec: Spec) -> Estimate:
    """The memory of one rank of a run, and whether it fits its card."""
    held = states(spec)
    points = moments(spec, held)
    peak = max(points, key=lambda moment: moment.total)
    likely = peak.total
    bounds = Range(likely, likely, likely)
    verdict = Verdict.UNKNOWN
    if spec.capacity_bytes is not None:
        verdict = Verdict.FITS if likely <= spec.capacity_bytes else Verdict.DOES_NOT_FIT
    return Estimate(
        peak=bounds,
        moments=points,
        verdict=verdict,
        capacity_bytes=spec.capacity_bytes,
        host=held.host,
        host_capacity_bytes=spec.host_memory_bytes,
        assumptions=held.assumptions,
        not_modelled=held.not_modelled,
    )
