from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered, related
from lintfit.checks.helpers.readers import milder, older
from lintfit.checks.helpers.runs import anchor, stated_at
from lintfit.checks.helpers.script_calls import arguments_call
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.run.model import Run

_SINCE = "4.38"
"""transformers stops since this version; before it a changed batch silently did not reach DeepSpeed."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("engine") != "deepspeed" or run.value("zero_stage") != 3:
        return
    asked = run.training.argument("auto_find_batch_size")
    if asked is None or asked.value is not True:
        return
    yield Report(
        asked.provenance.place or anchor(run),
        "auto_find_batch_size is not supported with ZeRO-3: the Trainer stops with ValueError",
        severity=milder(Severity.ERROR) if older((run,), "transformers", _SINCE) else Severity.ERROR,
        related=related(stated_at(run, "zero_stage"), "ZeRO-3 is asked for here"),
        fix=_fix(run),
        help="delete it",
    )


def _fix(run: Run) -> Fix | None:
    assert run.training is not None
    call = arguments_call(run)
    if run.script is None or call is None or run.script.facts.parse_call is not None:
        edits = run.training.write_argument("auto_find_batch_size", False)
    else:
        edits = run.script.remove_argument(call, "auto_find_batch_size")
    return offered("delete it", Applicability.SAFE, edits)
