from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import place_of
from lintfit.checks.helpers.savings import not_needed
from lintfit.checks.helpers.wording import peak


def check_run(context: RunContext) -> Iterator[Report]:
    saving = not_needed(context, "checkpointing")
    if saving is None:
        return
    yield Report(
        place_of(context.run, "gradient_checkpointing"),
        f"gradient checkpointing is not needed: computing the activations twice makes a step take {saving.slower:.1f} "
        f"times as long, and without it the peak is {peak(saving.estimate)}{saving.beside}",
        help="switch it off for this run",
    )
