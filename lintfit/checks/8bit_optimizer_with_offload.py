from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered, related
from lintfit.checks.helpers.readers import reader_of
from lintfit.checks.helpers.runs import stated_at
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.run.model import Run

_BITSANDBYTES = lazy_pattern(r"8bit$|^paged_|_bnb")

DECIDED_BY = ("optimizer",)


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("engine") != "deepspeed":
        return
    if run.value("offload_optimizer") not in ("cpu", "nvme") or not _forced(run):
        return
    asked = run.training.settings.get("optimizer")
    if asked is None or not isinstance(asked.value, str) or asked.provenance.kind != "file":
        return
    reader = reader_of((run,))
    place, offload = asked.provenance.place, stated_at(run, "offload_optimizer")
    if place is None or reader is None or not _BITSANDBYTES.search(asked.value):
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


def _forced(run: Run) -> bool:
    """Whether DeepSpeed insists on its own CPU optimizer, and the JSON has none that is used instead."""
    if run.deepspeed is None:
        return True
    insists = run.deepspeed.node("zero_force_ds_cpu_optimizer")
    return run.deepspeed.node("optimizer") is None and (insists is None or insists.value is True)


def _replaced(name: str) -> str:
    adamw = "32bit" in name and "adamw" in name
    states = "accelerate replaces it with DeepSpeedCPUAdam, 12 bytes per parameter in host memory"
    return states if adamw else f"{states}, with weight decay as Adam has it, not AdamW"


def _fix(run: Run) -> Fix | None:
    from lintfit.run.write import write_one

    # It claims no setting: what then runs is still DeepSpeedCPUAdam, now as AdamW.
    return offered("ask for AdamW", Applicability.UNSAFE, write_one(run, "optimizer", "adamw_torch"))
