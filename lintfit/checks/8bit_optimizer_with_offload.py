from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered, related
from lintfit.checks.helpers.readers import reader_of
from lintfit.checks.helpers.runs import stated_at
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.run.model import Run
from lintfit.run.offloaded_optimizer import asked_in_vain
from lintfit.settings.model import Setting

DECIDED_BY = ("optimizer",)

_CLASS = lazy_pattern(r"\b(?:Paged)?[A-Z][a-z]\w*?(?:8|32)bit\b")
"""bitsandbytes' classes: ``Adam8bit``, ``PagedAdamW32bit``."""
_LARGE = 2**30
"""Bytes of host memory from which on states there are worth a warning."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    asked, reader = asked_in_vain(run), reader_of((run,))
    place, offload = asked.provenance.place if asked is not None else None, stated_at(run, "offload_optimizer")
    if asked is None or place is None or reader is None:
        return
    raw, name = reader == "deepspeed", _written(asked)
    small = run.spec is not None and run.spec.method == "lora" and _on_host(context) < _LARGE
    yield Report(
        place,
        f"{name} cannot work on offloaded states: "
        + ("DeepSpeed stops with ZeRORuntimeException" if raw else _replaced(run, name)),
        severity=Severity.ERROR if raw else Severity.INFO if small else Severity.WARNING,
        related=related(offload, "the optimizer is offloaded here"),
        fix=None if raw else _fix(run),
        help="use DeepSpeedCPUAdam, or do not offload the optimizer"
        if raw
        else "ask for adamw_torch, or do not offload",
    )


def _on_host(context: RunContext) -> int:
    """What the run keeps in host memory, which for adapters alone are the states; no bound where that is not known."""
    return context.estimate.host.steady if context.estimate is not None else _LARGE


def _written(asked: Setting) -> str:
    """The optimizer as the file has it: a class of bitsandbytes, or the Trainer's name for one."""
    place = asked.provenance.place
    text = place.document.slice(place.span) if place is not None else ""
    found = _CLASS.search(text)
    return found.group() if found is not None else str(asked.value)


def _replaced(run: Run, name: str) -> str:
    states = "accelerate replaces it with DeepSpeedCPUAdam, 12 bytes per parameter in host memory"
    adamw = "adamw" in name.lower() and "32bit" not in name and _decays(run, name)
    return f"{states}, with weight decay as Adam has it, not AdamW" if adamw else states


def _decays(run: Run, name: str) -> bool:
    """Whether weight decay may be on. Where nobody states it, bitsandbytes' AdamW has 0.01 and the Trainer 0."""
    stated = run.settings.get("weight_decay")
    return stated.value != 0 if stated is not None else name[:1].isupper()


def _fix(run: Run) -> Fix | None:
    from lintfit.run.write import write_one

    # It claims no setting: what then runs is still DeepSpeedCPUAdam, now as AdamW.
    return offered("ask for AdamW", Applicability.UNSAFE, write_one(run, "optimizer", "adamw_torch"))
