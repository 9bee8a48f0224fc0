"""From a spec to an estimate: the moments of a step, the range around the largest, and the verdict."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory.alike import alike
from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.zero_config import optimizer_name
from lintfit.memory.moments import moments
from lintfit.memory.result import ALLOCATED, Estimate, HostMemory, Range, Verdict
from lintfit.memory.rollouts.reference import with_frozen_models
from lintfit.memory.rollouts.rollout import vllm_bytes
from lintfit.memory.spec import STAGES, Spec
from lintfit.memory.tensors.optimizers import bounded
from lintfit.memory.verdict.assumptions import assumptions
from lintfit.memory.verdict.bounds import around, bounds, judge
from lintfit.memory.verdict.undecided import undecided

_ESTIMATES: Memo[Estimate] = Memo(most=256)
"""Launches of one script are alike by the dozen, and so is what a plan for each of them tries."""


def estimate(spec: Spec) -> Estimate:
    """The memory of one rank of a run, and whether it fits its GPU; with what its longest sample takes over others."""
    return _ESTIMATES.get(alike(spec), (spec.micro_batch_size, spec.seq_len), lambda: _estimate(spec))


def _estimate(spec: Spec) -> Estimate:
    found = _of_run(spec)
    if spec.mean_seq_len is None:
        return found
    from lintfit.memory import longest

    said = longest.line(spec, found, _of_run)
    return replace(found, assumptions=(said, *found.assumptions)) if said else found


def _of_run(spec: Spec) -> Estimate:
    """The memory of one rank; of a pipeline that of the stage that needs most.

    The first stage has most micro-batches in flight, the last the logits.
    """
    if spec.pipeline_parallel == 1 or spec.pipeline_stage is not None:
        return _of_rank(spec)
    stages = (_of_rank(replace(spec, pipeline_stage=stage)) for stage in STAGES)
    return max(stages, key=lambda found: found.peak.likely)


def _of_rank(spec: Spec) -> Estimate:
    """The memory of one rank.

    The peak is the largest moment, never a sum over moments. ``allocated_bytes`` of the result is what torch's
    allocator counts; ``peak`` adds what nvidia-smi shows beside it.
    """
    held = states(spec)
    points, notes = moments(spec, held)
    peak = max(points, key=ALLOCATED)
    beside, assumed = around(spec, points, held)
    pool = vllm_bytes(spec)
    beside = Range(beside.low + pool, beside.likely + pool, beside.high + pool)
    span, doubts = bounds(spec, points, beside, held)
    on_top, bugs = _known_bugs(spec)
    span = replace(span, high=span.high + on_top)
    return Estimate(
        peak=span,
        moments=tuple([moment.beside(beside.likely) for moment in points]),
        verdict=_verdict(spec, span),
        capacity_bytes=spec.capacity_bytes,
        host=_host(spec, held.host),
        host_capacity_bytes=spec.host_memory_bytes,
        assumptions=(
            *assumptions(spec, peak.components),
            *held.assumptions,
            *assumed,
            *doubts,
            *_of_evaluation(spec),
            *bugs,
        ),
        not_modelled=(*held.not_modelled, *notes, *undecided(spec)),
        stage=spec.pipeline_stage,
    )


def _known_bugs(spec: Spec) -> tuple[int, tuple[str, ...]]:
    """What bugs of the run's versions take on top, and what to say of them."""
    if not spec.versions:
        return 0, ()
    from lintfit.memory.known_bugs import on_top

    return on_top(spec)


def _host(spec: Spec, host: HostMemory) -> HostMemory:
    """What the engine keeps on a node's host, with frozen models and what an evaluation keeps there."""
    host = with_frozen_models(spec, host)
    if spec.evaluation is None:
        return host
    from lintfit.memory.evaluation.kept import on_the_host

    return on_the_host(spec, host)


def _of_evaluation(spec: Spec) -> tuple[str, ...]:
    if spec.evaluation is None:
        return ()
    from lintfit.memory.evaluation.kept import assumptions

    return assumptions(spec)


def decided(spec: Spec) -> bool:
    """Whether the memory of all of a run is counted: neither its optimizer's states nor its ranks are a guess."""
    return not undecided(spec) and bounded(optimizer_name(spec))


def _verdict(spec: Spec, span: Range) -> Verdict:
    """The range held against the GPU; nothing is said to fit that is a guess."""
    verdict = judge(span, spec.capacity_bytes)
    return verdict if verdict is Verdict.DOES_NOT_FIT or decided(spec) else Verdict.UNKNOWN
