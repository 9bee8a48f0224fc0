from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.checks.helpers.wording import of_gib


def check_run(context: RunContext) -> Iterator[Report]:
    found, run = context.beyond, context.run
    if (
        found is None
        or run.script is None
        or run.spec is None
        or run.spec.engine != "fsdp"
        or found.spec.engine == "fsdp"
    ):
        return
    if run.spec.capacity_bytes is None:
        return
    yield Report(
        anchor(run),
        f"{found.why}, with the rest {of_gib(found.estimate.peak.likely, run.spec.capacity_bytes)}",
        help="install torch 2.1 or newer, which frees them",
    )
