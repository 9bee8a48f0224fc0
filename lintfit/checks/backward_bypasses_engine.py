from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.readers import older
from lintfit.documents.model import Edit
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.run.model import Run
from lintfit.sources.script.model import Call

_TORCH_STYLE = "0.18.3"
"""The first DeepSpeed whose engine hears of ``loss.backward()`` (DeepSpeed#7665)."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.script.facts.trainer is not None:
        return
    engine = run.script.facts.initialize
    if engine is None or engine.taken is not True:
        return
    accelerator = run.script.facts.accelerator
    maker = engine if engine.name == "initialize" else accelerator
    owner = maker.assigned_to if maker is not None else None
    calls = run.script.calls("backward")
    if owner is None or any(call.positional or call.arguments for call in calls):
        return
    stepped = engine.name != "initialize" or any(step.receiver == owner for step in run.script.calls("step"))
    for call in calls:
        judged = _consequence(run, engine)
        if judged is not None and call.taken is True and call.receiver is not None and "(" not in call.receiver:
            severity, what = judged
            yield Report(
                call.place,
                f"{call.receiver}.backward() goes past {owner}: {what}",
                severity=severity,
                related=(Related(engine.place, "the engine is made here"),),
                fix=_fix(call, owner, severity) if stepped else None,
                help=f"{owner}.backward({call.receiver})" + ("" if stepped else f", and {owner}.step() after it"),
            )


def _consequence(run: Run, engine: Call) -> tuple[Severity, str] | None:
    if engine.name == "initialize":
        modern = older((run,), "deepspeed", _TORCH_STYLE)
        if modern is False:
            return None
        what = f"before DeepSpeed {_TORCH_STYLE} the loss is not scaled and ZeRO does not reduce the gradients"
        return (Severity.ERROR if modern else Severity.INFO), what
    if run.value("engine") == "deepspeed":
        return (
            Severity.ERROR,
            "under DeepSpeed the optimizer steps only in accelerate's backward, so nothing is trained",
        )
    if run.value("mixed_precision") == "fp16" and run.value("engine") in ("single", "ddp"):
        return Severity.ERROR, "in fp16 the loss is not scaled, and step() stops with AssertionError (No inf checks)"
    return None


def _fix(call: Call, owner: str, severity: Severity) -> Fix:
    """Only shown where the version decides whether anything is wrong: with today's the call is right as it is."""
    document = call.place.document
    applicability = Applicability.SAFE if severity is Severity.ERROR else Applicability.DISPLAY
    edit = Edit(call.place.span, f"{owner}.backward({call.receiver})")
    return spliced(document, f"call {owner}.backward", applicability, [edit])
