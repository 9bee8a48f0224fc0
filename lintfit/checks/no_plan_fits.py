from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.memory.result import Verdict


def check_run(context: RunContext) -> Iterator[Report]:
    if (
        context.verdict is Verdict.DOES_NOT_FIT
        and context.plan is None
        and context.shortfall
        and not _as_it_saves(context)
        and all(one.estimate.verdict is not Verdict.TIGHT for one in context.rejected)  # which may do
    ):
        yield Report(anchor(context.run), f"no change that lintfit knows makes the run fit: {context.shortfall}")


def _as_it_saves(context: RunContext) -> bool:
    """Whether a whole copy on every GPU decides, which fsdp-whole-state-dict says how to do without."""
    spec, estimate = context.run.spec, context.estimate
    if spec is None or estimate is None or not spec.saves_on_gpu:
        return False
    return max(estimate.moments, key=lambda moment: moment.total).phase == "save"
