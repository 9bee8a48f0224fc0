from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered, related
from lintfit.checks.helpers.readers import reader_of
from lintfit.findings.model import Applicability, Fix
from lintfit.run.model import Run
from lintfit.settings.model import AUTO, Setting

_NAME = "gradient_accumulation_steps"


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.value("engine") != "deepspeed" or reader_of((run,)) != "accelerate":
        return
    accelerator = run.script.facts.accelerator
    asked = accelerator.argument(_NAME) if accelerator is not None else None
    if asked is None or not isinstance(asked.value, int) or asked.value <= 1:
        return
    used = _deepspeeds(run)
    if used is None or used.value == asked.value:
        return
    place = used.provenance.place
    absent = used.provenance.kind == "default"
    yield Report(
        asked.whole,
        f"Accelerator is asked to accumulate {asked.value} steps, DeepSpeed {used.value}"
        f"{' (its file says nothing)' if absent else ''}: DeepSpeed's value wins{_batch(run, asked.value, used.value)}",
        related=related(place, "DeepSpeed's value"),
        fix=_fix(run),
        help=f'write "{_NAME}": "auto" in the DeepSpeed config',
    )


def _deepspeeds(run: Run) -> Setting | None:
    """What DeepSpeed is told: its JSON, which counts as 1 where it is silent, else the launcher or the YAML. What a
    plugin of the script's own says comes before those (``DeepSpeedPlugin.__post_init__``) and is not compared."""
    assert run.script is not None
    if any(call.argument(_NAME) is not None for call in run.script.calls("DeepSpeedPlugin")):
        return None
    if run.deepspeed is not None:
        stated = run.deepspeed.settings.get(_NAME)
        if stated is None and run.deepspeed.node("train_batch_size") is None:
            effective = run.settings.get(_NAME)
            return effective if effective is not None and effective.provenance.kind == "default" else None
        return stated if stated is not None and stated.known else None
    for source in (run.launch, run.accelerate):
        stated = source.settings.get(_NAME) if source is not None else None
        if stated is not None:
            return stated if stated.known else None
    return None


def _batch(run: Run, asked: int, used: int) -> str:
    micro, gpus = run.value("micro_batch_size"), run.hardware.gpus
    if not isinstance(micro, int) or gpus is None:
        return ""
    return f", a step has {micro * used * gpus} samples, not {micro * asked * gpus}"


def _fix(run: Run) -> Fix | None:
    if run.deepspeed is None:
        return None
    return offered('let the Accelerator fill it ("auto")', Applicability.UNSAFE, run.deepspeed.write(_NAME, AUTO))
