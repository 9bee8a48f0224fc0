from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.memory.result import Verdict


def check_run(context: RunContext) -> Iterator[Report]:
    if context.verdict is Verdict.DOES_NOT_FIT and context.plan is None and context.shortfall:
        yield Report(anchor(context.run), f"no combination of changes makes this run fit: {context.shortfall}")
