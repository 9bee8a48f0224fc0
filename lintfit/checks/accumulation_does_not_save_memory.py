"""The rule accumulation-does-not-save-memory: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import Report, RunContext
from lintfit.checks.runs import stated_at
from lintfit.checks.wording import gib
from lintfit.memory.result import Verdict

_SAME = 0.01
"""Share of the peak below which two estimates are the same."""


def check_run(context: RunContext) -> Iterator[Report]:
    spec, estimate = context.run.spec, context.estimate
    place = stated_at(context.run, "gradient_accumulation_steps")
    if spec is None or estimate is None or place is None or context.verdict is not Verdict.DOES_NOT_FIT:
        return
    once = context.what_if(gradient_accumulation_steps=1)
    if spec.gradient_accumulation_steps == 1 or once is None:
        return
    now, then = estimate.peak.likely, once.peak.likely
    if now < (1 - _SAME) * then:
        return
    micro = spec.micro_batch_size
    yield Report(
        place,
        f"accumulating {spec.gradient_accumulation_steps} steps does not lower the peak ({gib(now)}, {gib(then)} "
        f"with 1): what counts is the micro-batch, which is {micro}",
        help="lower the micro-batch" if micro > 1 else "the micro-batch is 1 already: shorten the sequence, or shard",
    )
