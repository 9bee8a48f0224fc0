from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.wording import of_gib
from lintfit.run.stopping import loads_on_one_gpu


def check_run(context: RunContext) -> Iterator[Report]:
    found = loads_on_one_gpu(context.run)
    if found is None:
        return
    short = ""
    if context.beyond is not None and context.run.spec is not None and context.run.spec.capacity_bytes is not None:
        short = f", which takes {of_gib(context.beyond.estimate.peak.likely, context.run.spec.capacity_bytes)}"
    yield Report(
        found.place,
        f"{found.reason}{short}: accelerate stops with ValueError (loaded on a different device than the one you're "
        "training on), unless they run out of memory before",
        help=f"pass {found.help} to from_pretrained",
    )
