from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.wording import gib
from lintfit.run.model import Run


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.launch is None or run.accelerate is None:
        return
    launched, written = run.launch.settings.get("gpus"), run.accelerate.settings.get("gpus")
    if launched is None or written is None or launched.provenance.place is None:
        return
    if not isinstance(launched.value, int) or not isinstance(written.value, int) or launched.value == written.value:
        return
    place = written.provenance.place
    yield Report(
        launched.provenance.place,
        f"the launch line starts {launched.value} process{'' if launched.value == 1 else 'es'}, "
        f"the config file says {written.value}"
        f"{_batch(run, launched.value, written.value)}{_memory(context, written.value)}",
        related=related(place, "the file's number"),
        help="the launch line wins; adjust the learning rate or the accumulation if the other number was meant",
    )


def _batch(run: Run, launched: int, written: int) -> str:
    micro, steps = run.value("micro_batch_size"), run.value("gradient_accumulation_steps", 1)
    if not isinstance(micro, int) or not isinstance(steps, int) or run.value("train_batch_size") is not None:
        return ""
    return f": a step has {micro * steps * launched} samples, not {micro * steps * written}"


def _memory(context: RunContext, written: int) -> str:
    other = context.what_if(gpus=written) if context.estimate is not None else None
    if other is None or context.estimate is None or other.peak.likely == context.estimate.peak.likely:
        return ""
    return f", and a GPU peaks at {gib(context.estimate.peak.likely)}, not {gib(other.peak.likely)}"
