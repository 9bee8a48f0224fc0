from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import place_of
from lintfit.checks.helpers.savings import not_needed
from lintfit.checks.helpers.wording import peak


def check_run(context: RunContext) -> Iterator[Report]:
    saving = not_needed(context, "micro-batch")
    if saving is None or context.run.spec is None:
        return
    micro, steps = saving.changes["micro_batch_size"], saving.changes["gradient_accumulation_steps"]
    yield Report(
        place_of(context.run, "micro_batch_size"),
        f"a micro-batch of 1 is not needed: {context.run.spec.gradient_accumulation_steps} of them make a step take "
        f"{saving.slower:.1f} times as long as {steps} of {micro} samples, whose peak is "
        f"{peak(saving.estimate)}{saving.beside}",
        help=f"micro-batch {micro} with accumulation {steps} is the same effective batch",
    )
