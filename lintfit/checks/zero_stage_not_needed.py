from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import place_of
from lintfit.checks.helpers.savings import not_needed
from lintfit.checks.helpers.wording import peak


def check_run(context: RunContext) -> Iterator[Report]:
    saving = not_needed(context, "zero-3")
    if saving is None:
        return
    stage = saving.changes["zero_stage"]
    yield Report(
        place_of(context.run, "zero_stage"),
        f"ZeRO-3 is not needed: gathering the weights makes a step take {saving.slower:.1f} times as long as under "
        f"ZeRO-{stage}, whose peak is {peak(saving.estimate)}{saving.beside}",
        help=f"take stage {stage} for this run, where no larger model shares the config",
    )
