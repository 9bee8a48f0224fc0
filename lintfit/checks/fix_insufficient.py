from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.checks.helpers.wording import gib, peak, united
from lintfit.findings.model import Rejected
from lintfit.memory.result import Verdict
from lintfit.settings.registry import SETTINGS
from lintfit.settings.wording import phrases

_LADDER = frozenset({"engine", "zero_stage", "offload_optimizer", "offload_param"})
"""What the usual advice itself changes."""


def check_run(context: RunContext) -> Iterator[Report]:
    if context.verdict is not Verdict.DOES_NOT_FIT or context.estimate is None:
        return
    tried = context.rejected or (context.plan.rejected if context.plan is not None else ())
    rejected = [one for one in tried if _falls_short(one)]
    if rejected:
        now = gib(context.estimate.peak.likely)
        yield Report(
            anchor(context.run),
            f"not enough {_beside(context)} (the peak is {now} now): {'; '.join(_line(one) for one in rejected)}",
            help="take the plan, which goes further" if context.plan is not None else "nothing in reach suffices",
        )


def _beside(context: RunContext) -> str:
    """What the steps are judged with: a plan's other changes, as they are said to a person."""
    steps = context.plan.steps if context.plan is not None else ()
    others = {step.setting: step.after for step in steps if step.setting not in _LADDER and step.setting in SETTINGS}
    if not others:
        return "by itself"
    changes = {name: after for name, after in others.items() if SETTINGS[name].by != "zero-section"}
    said = [phrase.text for phrase in phrases(changes, {step.setting: step.before for step in steps})]
    return f"even if you {united(said)}" if said else "even with smaller buffers"


def _falls_short(rejected: Rejected) -> bool:
    """Whether it is known not to suffice: likely on the GPU, or on the host. What is merely close may do."""
    estimate = rejected.estimate
    capacity, host = estimate.capacity_bytes, estimate.host_capacity_bytes
    too_much = capacity is not None and estimate.peak.likely > capacity
    return too_much or (host is not None and estimate.host.peak > host)


def _line(rejected: Rejected) -> str:
    estimate = rejected.estimate
    return f"{rejected.description} {peak(estimate)}{_host(rejected)}"


def _host(rejected: Rejected) -> str:
    estimate = rejected.estimate
    there = estimate.host_capacity_bytes
    if estimate.verdict is Verdict.DOES_NOT_FIT or there is None or estimate.host.peak <= there:
        return ""
    return f" but {gib(estimate.host.peak)} of {gib(there)} host memory"
