from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.checks.helpers.wording import gib, of_gib
from lintfit.memory.result import Verdict


def check_run(context: RunContext) -> Iterator[Report]:
    estimate = context.estimate
    if context.verdict is not Verdict.TIGHT or estimate is None or estimate.capacity_bytes is None:
        return
    peak = estimate.peak
    around = f" ({gib(peak.low)} to {gib(peak.high)})" if peak.low < peak.high else ""
    yield Report(
        anchor(context.run),
        f"the peak is {of_gib(peak.likely, estimate.capacity_bytes)} per GPU{around}: "
        "a long sample or a fragmented heap is enough to run out of memory",
        help="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lessens fragmentation; a smaller "
        f"{'batch of the evaluation' if estimate.peaks_in_evaluation else 'micro-batch'} makes room",
    )
