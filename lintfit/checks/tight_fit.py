from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext, has_room
from lintfit.checks.helpers.runs import anchor, at_length, place_of
from lintfit.checks.helpers.wording import gib, of_gib
from lintfit.memory.result import Estimate, Verdict
from lintfit.verdict.capped import exact_length


def check_run(context: RunContext) -> Iterator[Report]:
    estimate = context.estimate
    if context.verdict is not Verdict.TIGHT or estimate is None or estimate.capacity_bytes is None:
        return
    if context.longest is not None:
        yield _capped(context, estimate, context.longest)
        return
    peak = estimate.peak
    around = f" ({gib(peak.low)} to {gib(peak.high)})" if peak.low < peak.high else ""
    yield Report(
        anchor(context.run),
        f"the peak{at_length(context)} is {of_gib(peak.likely, estimate.capacity_bytes)} per GPU{around}: "
        f"{_ends(context, estimate)}",
        help="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lessens fragmentation; a smaller "
        f"{'batch of the evaluation' if estimate.peaks_in_evaluation else 'micro-batch'} makes room",
    )


def _ends(context: RunContext, estimate: Estimate) -> str:
    """What a peak means that is close to the GPU's size, on either side of it."""
    if estimate.capacity_bytes is not None and estimate.peak.likely > estimate.capacity_bytes:
        return "it likely runs out of memory, and may just fit"
    if has_room(estimate):
        return "it likely fits, and only the upper end of the estimate does not"
    long = "" if exact_length(context.run) else "a long sample or "
    return f"{long}a fragmented heap is enough to run out of memory"


def _capped(context: RunContext, estimate: Estimate, longest: int) -> Report:
    """It fits while its samples stay below the length at which they are cut, and nobody knows how long they are."""
    assert estimate.capacity_bytes is not None and context.run.spec is not None
    cap = context.run.spec.seq_len
    return Report(
        place_of(context.run, "seq_len"),
        f"the peak is {of_gib(estimate.peak.likely, estimate.capacity_bytes)} per GPU with a sample of {cap:,} tokens, "
        f"at which they are cut; it fits while none has more than {longest:,}",
        fix=context.plan.fix if context.plan is not None else None,
        help=f"what fits: {context.plan.fix.message}" if context.plan is not None else "",
    )
