from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import place_of
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Severity
from lintfit.memory.result import Estimate
from lintfit.memory.spec import Spec

_TYPICAL = 2
"""GiB of host memory per GiB of GPU memory that machines usually have."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    spec, estimate = run.spec, context.estimate
    if spec is None or estimate is None or not estimate.host.peak:
        return
    if not {"offload_optimizer", "offload_param"}.isdisjoint(run.doubtful):
        return
    needed, there = estimate.host.peak, estimate.host_capacity_bytes
    if there is not None and needed <= there:
        return
    if there is None and not _more_than_usual(spec, needed):
        return
    yield Report(
        place_of(run, "offload_optimizer", "offload_param"),
        f"{_what(estimate, spec)} {gib(needed)} of host memory on each node{_pinned(estimate)}, {_against(there)}",
        severity=Severity.ERROR if there is not None else Severity.WARNING,
        fix=context.plan.fix if there is not None and context.plan is not None else None,
        help="offload less, let ZeRO-3 partition the model while it loads, or give --host-memory if there is more",
    )


def _more_than_usual(spec: Spec, needed: int) -> bool:
    if spec.capacity_bytes is None:
        return False
    per_node = max(1, spec.gpus // max(1, spec.nodes))
    return needed > _TYPICAL * per_node * spec.capacity_bytes


def _what(estimate: Estimate, spec: Spec) -> str:
    if estimate.host.load_peak > estimate.host.steady:
        ranks = max(1, spec.gpus // max(1, spec.nodes))
        return f"loading a copy of the model on each of {ranks} ranks takes" if ranks > 1 else "loading the model takes"
    return "offloading takes"


def _pinned(estimate: Estimate) -> str:
    steady = estimate.host.load_peak <= estimate.host.steady
    return f" ({gib(estimate.host.pinned)} of it pinned)" if steady and estimate.host.pinned else ""


def _against(there: int | None) -> str:
    if there is None:
        return "more than machines with such GPUs usually have; a process that runs out is killed with exit code -9"
    return f"the machine has {gib(there)}: the process is killed with exit code -9"
