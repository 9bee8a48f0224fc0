from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import change, of_cause, spared, stated_at
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Applicability

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
    yield Report(
        place,
        f"{name} holds the model's outputs through the backward pass{until}: {gib(saved)} at the peak",
        severity=of_cause(context, context.what_if(**_LET_GO)),
        fix=change(run, f"let go of {name} before the backward pass", Applicability.SAFE, _LET_GO),
        help=f"only the loss is needed: del {name} once the loss is taken from it, or loss = model(**batch).loss",
    )
