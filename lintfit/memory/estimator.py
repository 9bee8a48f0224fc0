"""From a spec to an estimate: the moments of a step, the range around the largest, and the verdict."""

from __future__ import annotations

from dataclasses import replace

from lintfit.memory.assumptions import assumptions
from lintfit.memory.engines import states
from lintfit.memory.framework import framework, side_streams
from lintfit.memory.moments import at_the_loss, moments
from lintfit.memory.optimizers import bounded
from lintfit.memory.result import Estimate, Moment, Range, Verdict
from lintfit.memory.rollout import vllm_bytes
from lintfit.memory.spec import Spec
from lintfit.memory.undecided import undecided
from lintfit.memory.verdict import bounds, judge
from lintfit.memory.zero_config import optimizer_name


def estimate(spec: Spec) -> Estimate:
    """The memory of one rank of a run, and whether it fits its card; of a pipeline the stage that needs most."""
    return _of_rank(largest_stage(spec))


def largest_stage(spec: Spec) -> Spec:
    """The same run as the pipeline's stage that needs most: the first has most micro-batches in flight, the last the
    logits."""
    if spec.pipeline_parallel == 1 or spec.pipeline_stage is not None:
        return spec
    first, last = replace(spec, pipeline_stage="first"), replace(spec, pipeline_stage="last")
    return max(first, last, key=lambda stage: _of_rank(stage).peak.likely)


def _of_rank(spec: Spec) -> Estimate:
    """The memory of one rank.

    The peak is the largest moment, never a sum over moments. ``allocated_bytes`` of the result is what torch's
    allocator counts; ``peak`` adds what nvidia-smi shows beside it.
    """
    held = states(spec)
    points, notes = moments(spec, held)
    peak = max(points, key=lambda moment: moment.allocated)
    loss = at_the_loss(points, peak)
    beside, assumed = framework(
        spec, peak.allocated, held, peak.components.get("logits", 0), loss, side_streams(spec, points, peak)
    )
    pool = vllm_bytes(spec)
    beside = Range(beside.low + pool, beside.likely + pool, beside.high + pool)
    span, doubts = bounds(spec, points, beside, held)
    return Estimate(
        peak=span,
        moments=tuple(_with_framework(moment, beside.likely) for moment in points),
        verdict=_verdict(spec, span),
        capacity_bytes=spec.capacity_bytes,
        host=held.host,
        host_capacity_bytes=spec.host_memory_bytes,
        assumptions=(*assumptions(spec, peak.components), *held.assumptions, *assumed, *doubts),
        not_modelled=(*held.not_modelled, *notes, *undecided(spec)),
    )


def _verdict(spec: Spec, span: Range) -> Verdict:
    """The range held against the card; nothing is said to fit whose optimizer's states or ranks are a guess."""
    verdict = judge(span, spec.capacity_bytes)
    if verdict is not Verdict.DOES_NOT_FIT and (undecided(spec) or not bounded(optimizer_name(spec))):
        return Verdict.UNKNOWN
    return verdict


def _with_framework(moment: Moment, size: int) -> Moment:
    return Moment(moment.name, moment.phase, {**moment.components, "framework": size})
