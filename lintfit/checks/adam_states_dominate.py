from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import arguments_of, enough, most, stated_at
from lintfit.checks.helpers.wording import gib, of_gib
from lintfit.findings.model import Applicability, Severity
from lintfit.memory.result import Verdict

_EIGHT_BIT = "adamw_8bit"
_WORTH_IT = 0.1
"""Share of the GPU that 8-bit states must give back to be mentioned."""
_FULL_STATES = ("adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused", "adamw", "adam")


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if spec is None or estimate is None or context.verdict_of_training is not Verdict.DOES_NOT_FIT:
        return
    if spec.method != "full" or spec.offload_optimizer != "none" or spec.optimizer not in _FULL_STATES:
        return
    if run.training is None or (run.deepspeed is not None and run.deepspeed.node("optimizer") is not None):
        return
    smaller = context.what_if(optimizer=_EIGHT_BIT)
    if smaller is None or estimate.capacity_bytes is None:
        return
    now, then = most(estimate, "optimizer_states"), most(smaller, "optimizer_states")
    if now - then < _WORTH_IT * estimate.capacity_bytes:
        return
    fix = enough(context, "keep the states in 8 bits", Applicability.UNSAFE, {"optimizer": _EIGHT_BIT})
    yield Report(
        stated_at(run, "optimizer") or arguments_of(run),
        f"AdamW's two states take {of_gib(now, estimate.capacity_bytes)}, in 8 bits {gib(then)}",
        severity=Severity.WARNING if fix is not None else Severity.INFO,
        fix=fix,
        help=f"{run.training.spelled('optim', _EIGHT_BIT) or 'an 8-bit AdamW'} quantizes the states in blocks; "
        "sharding or offloading them leaves the numbers alone",
    )
