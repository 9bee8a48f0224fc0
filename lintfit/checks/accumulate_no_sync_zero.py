from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.readers import milder, older, reader_of
from lintfit.checks.helpers.runs import stated_at
from lintfit.findings.model import Severity

_FORBIDS, _PATCHED = "0.16", "1.10"
"""DeepSpeed asserts since 0.16.0, accelerate does not ask any more since 1.10.0 (accelerate#3656)."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.value("engine") != "deepspeed" or run.value("zero_stage") not in (2, 3):
        return
    steps = run.value("gradient_accumulation_steps")
    if reader_of((run,)) != "accelerate" or not isinstance(steps, int) or steps <= 1:
        return
    before = older((run,), "deepspeed", _FORBIDS)
    if not older((run,), "accelerate", _PATCHED) or before:
        return
    stage = stated_at(run, "zero_stage")
    for call in run.script.calls("accumulate", "no_sync"):
        if call.taken is True and "accelerator" in (call.receiver or "").lower():
            yield Report(
                call.place,
                f"{call.name}() with ZeRO-{run.value('zero_stage')} and {steps} steps: DeepSpeed {_FORBIDS} and up "
                f"stops with AssertionError (no_sync) under accelerate before {_PATCHED}",
                severity=milder(Severity.ERROR) if before is None else Severity.ERROR,
                related=related(stage, "the stage"),
                help=f"upgrade accelerate to {_PATCHED}, or pin DeepSpeed below {_FORBIDS}",
            )
