from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.checks.helpers.wording import gib, of_gib, peak
from lintfit.findings.model import Rejected
from lintfit.memory.result import Verdict

_LADDER = frozenset({"engine", "zero_stage", "offload_optimizer", "offload_param"})
"""What the usual advice itself changes."""


def check_run(context: RunContext) -> Iterator[Report]:
    if context.verdict is not Verdict.DOES_NOT_FIT or context.estimate is None:
        return
    tried = context.rejected or (context.plan.rejected if context.plan is not None else ())
    rejected = [one for one in tried if _falls_short(one)]
    if rejected:
        now = gib(context.estimate.peak.likely)
        # Beside a plan the steps are judged with its other changes made.
        alone = context.plan is None or all(step.setting in _LADDER for step in context.plan.steps)
        how = "by itself" if alone else "even with the plan's other changes made"
        yield Report(
            anchor(context.run),
            f"not enough {how} (the peak is {now} now): {'; '.join(_line(one) for one in rejected)}",
            help="take the plan, which goes further" if context.plan is not None else "nothing in reach suffices",
        )


def _falls_short(rejected: Rejected) -> bool:
    """Whether it is known not to suffice: on the GPU, at least at the high end, or on the host."""
    estimate = rejected.estimate
    capacity, host = estimate.capacity_bytes, estimate.host_capacity_bytes
    if estimate.verdict in (Verdict.DOES_NOT_FIT, Verdict.TIGHT):
        return True
    too_much = capacity is not None and estimate.peak.likely > capacity
    return too_much or (host is not None and estimate.host.peak > host)


def _line(rejected: Rejected) -> str:
    estimate = rejected.estimate
    capacity = estimate.capacity_bytes
    if capacity is None or estimate.peak.likely > capacity:
        return f"{rejected.description} {peak(estimate)}{_host(rejected)}"
    likely, high = gib(estimate.peak.likely), of_gib(estimate.peak.high, capacity)
    around = f"{likely}, up to {high}" if estimate.peak.high > capacity else of_gib(estimate.peak.likely, capacity)
    return f"{rejected.description} {around}{_host(rejected)}"


def _host(rejected: Rejected) -> str:
    estimate = rejected.estimate
    there = estimate.host_capacity_bytes
    if estimate.verdict is Verdict.DOES_NOT_FIT or there is None or estimate.host.peak <= there:
        return ""
    return f" but {gib(estimate.host.peak)} of {gib(there)} host memory"
