from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.checkpointing import how_known, stated_place, with_reentrant
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import milder, older
from lintfit.checks.helpers.runs import anchor
from lintfit.findings.model import Severity
from lintfit.run.model import Run

_MENDED = "0.19.4"
"""The first release of DeepSpeed with #8148: frozen parameters stay whole while a layer is recomputed."""

OF_LAUNCHES = True
DECIDED_BY = ("gradient_checkpointing", "use_reentrant", "method")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.value("engine") != "deepspeed" or run.value("zero_stage") != 3:
        return
    if run.value("method") != "lora" or run.value("gradient_checkpointing") is not True:
        return
    if run.value("use_reentrant") is not False or run.script.uses_trl:
        return
    severity = _severity(run)
    if severity is None:
        return
    yield Report(
        stated_place(run) or anchor(run),
        "non-reentrant checkpointing of frozen parameters under ZeRO-3: DeepSpeed before 0.19.4 frees them while a "
        "layer is recomputed, and backward stops with CheckpointError (recomputed shape [0])",
        severity=severity,
        fix=with_reentrant(run, True) if severity is Severity.ERROR else None,
        help='use DeepSpeed 0.19.4, or gradient_checkpointing_kwargs={"use_reentrant": True} with '
        "model.enable_input_require_grads()",
    )


def _severity(run: Run) -> Severity | None:
    """One step milder for each version that would settle it and is not known."""
    old = older((run,), "deepspeed", _MENDED)
    if old is False:
        return None
    severity = Severity.ERROR if old else milder(Severity.ERROR)
    return milder(severity) if how_known(run) == "guess" else severity
