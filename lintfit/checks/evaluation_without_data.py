from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import older
from lintfit.findings.model import Severity
from lintfit.run.model import Run
from lintfit.run.stopping import evaluates_nothing
from lintfit.versions import COMMIT

_AT_ONCE = "4.46"
"""The transformers whose ``Trainer.__init__`` first looks (``sources/script/reading/stopping.py``)."""


def check_run(context: RunContext) -> Iterator[Report]:
    found = evaluates_nothing(context.run)
    if found is None:
        return
    severity = _severity(context.run)
    at_once = f" at once with transformers {_AT_ONCE} and later, else only if an evaluation comes"
    yield Report(
        found.place,
        "the trainer is to evaluate as it trains and has no eval_dataset: it stops with ValueError"
        f"{'' if severity is Severity.ERROR else at_once}",
        severity=severity,
        help="pass one, or leave out eval_strategy",
    )


def _severity(run: Run) -> Severity:
    """An error where the constructor is known to look; where nobody states a release, or only the oldest that will do,
    an install gets the newest."""
    if older([run], "transformers", _AT_ONCE) is False:
        return Severity.ERROR
    if _by_steps(run):
        return Severity.INFO
    stated = "transformers" in run.versions or "transformers" + COMMIT in run.versions
    return Severity.WARNING if stated else Severity.ERROR


def _by_steps(run: Run) -> bool:
    """Whether it evaluates after so many steps, which a short training never comes to; an epoch ends in any."""
    strategy = run.script.argument("eval_strategy", "evaluation_strategy") if run.script is not None else None
    return strategy is None or strategy.value != "epoch"
