from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import change, is_sure, of_cause, spared, stated_at
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Applicability, Severity
from lintfit.memory.result import Verdict

_WORTH_IT = 0.05
"""Share of the GPU that a run that is close gets back, to be worth a warning."""
_LET_GO = {"loop_outputs": "dropped"}


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec = context.run, context.run.spec
    held, place = run.settings.get("loop_outputs"), stated_at(run, "loop_outputs")
    if spec is None or held is None or place is None or spec.loop_outputs == "dropped":
        return
    saved = spared(context, _LET_GO)
    if not saved:
        return
    name = held.provenance.detail.partition(" ")[0]
    until = ", and until the next batch has its own" if spec.loop_outputs == "held" else ""
    severity = of_cause(context, context.what_if(**_LET_GO), "loop_outputs")
    if context.verdict is Verdict.TIGHT and is_sure(context) and saved >= _WORTH_IT * (spec.capacity_bytes or 0):
        severity = Severity.WARNING
    yield Report(
        place,
        f"{name} holds the model's outputs through the backward pass{until}: {gib(saved)} at the peak",
        severity=severity,
        fix=change(run, f"let go of {name} before the backward pass", Applicability.SAFE, _LET_GO),
        help=f"only the loss is needed: del {name} once the loss is taken from it, or loss = model(**batch).loss",
    )
