from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered, related
from lintfit.checks.helpers.readers import reader_of
from lintfit.checks.helpers.runs import stated_at
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.run.model import Run
from lintfit.run.offloaded_optimizer import asked_in_vain

DECIDED_BY = ("optimizer",)


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    asked, reader = asked_in_vain(run), reader_of((run,))
    place, offload = asked.provenance.place if asked is not None else None, stated_at(run, "offload_optimizer")
    if asked is None or place is None or reader is None:
        return
    raw = reader == "deepspeed"
    yield Report(
        place,
        f"{asked.value} cannot work on offloaded states: "
        + ("DeepSpeed stops with ZeRORuntimeException" if raw else _replaced(asked.value)),
        severity=Severity.ERROR if raw else Severity.WARNING,
        related=related(offload, "the optimizer is offloaded here"),
        fix=None if raw else _fix(run),
        help="use DeepSpeedCPUAdam, or do not offload the optimizer"
        if raw
        else "ask for adamw_torch, or do not offload",
    )


def _replaced(name: str) -> str:
    adamw = "32bit" in name and "adamw" in name
    states = "accelerate replaces it with DeepSpeedCPUAdam, 12 bytes per parameter in host memory"
    return states if adamw else f"{states}, with weight decay as Adam has it, not AdamW"


def _fix(run: Run) -> Fix | None:
    from lintfit.run.write import write_one

    # It claims no setting: what then runs is still DeepSpeedCPUAdam, now as AdamW.
    return offered("ask for AdamW", Applicability.UNSAFE, write_one(run, "optimizer", "adamw_torch"))
