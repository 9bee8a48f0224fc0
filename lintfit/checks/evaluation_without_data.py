from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.run.stopping import evaluates_nothing


def check_run(context: RunContext) -> Iterator[Report]:
    found = evaluates_nothing(context.run)
    if found is not None:
        yield Report(
            found.place,
            "the trainer is to evaluate as it trains and has no eval_dataset: it stops with ValueError",
            help="pass one, or leave out eval_strategy",
        )
