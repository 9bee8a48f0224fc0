from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.findings.model import Related
from lintfit.run.model import Run
from lintfit.sources.script.reading import loops

_OWN_WAYS = ("set_gradient_accumulation_boundary", "no_sync")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    engine = run.script.facts.initialize if run.script is not None else None
    if run.script is None or engine is None or engine.name != "initialize" or engine.assigned_to is None:
        return
    if not _steps_every_time(run) or any(way in run.script.document.text for way in _OWN_WAYS):
        return
    document = run.script.document
    if "%" not in document.text:
        return
    for loop in loops.loops(document):
        guard = loops.guarded_step(loop, engine.assigned_to)
        if guard is None:
            continue
        test, step, backward = guard
        setting = run.settings["gradient_accumulation_steps"].provenance.place
        yield Report(
            loops.place(document, step),
            f"{engine.assigned_to}.step() waits for {loops.text(document, test)}, but DeepSpeed accumulates one step: "
            f"with ZeRO-{run.value('zero_stage')} only the last micro-batch's gradients are left",
            related=(
                Related(loops.place(document, backward), "each of these is a boundary to DeepSpeed"),
                *related(setting, "one step is accumulated"),
            ),
            help="write the number into gradient_accumulation_steps and call step() after every backward",
        )


def _steps_every_time(run: Run) -> bool:
    steps = run.settings.get("gradient_accumulation_steps")
    if run.deepspeed is None or run.value("zero_stage") not in (2, 3) or steps is None or steps.value != 1:
        return False
    managed = run.deepspeed.node("managed_gradient_accumulation")
    return steps.provenance.kind != "assumed" and (managed is None or managed.value is not False)
