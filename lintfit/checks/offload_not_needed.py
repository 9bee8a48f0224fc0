from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import change, place_of
from lintfit.checks.helpers.savings import not_needed
from lintfit.checks.helpers.wording import peak
from lintfit.findings.model import Applicability

_WHAT = {"offload_param": "offloading the parameters", "offload_optimizer": "offloading the optimizer"}


def check_run(context: RunContext) -> Iterator[Report]:
    saving = not_needed(context, "offload")
    if saving is None:
        return
    what = _WHAT[next(iter(saving.changes))] if len(saving.changes) == 1 else "offloading parameters and optimizer"
    yield Report(
        place_of(context.run, *saving.changes),
        f"{what} is not needed: it makes a step take {saving.slower:.1f} times as long, and without it the peak is "
        f"{peak(saving.estimate)}",
        fix=change(context.run, "keep it on the GPU", Applicability.UNSAFE, saving.changes),
    )
