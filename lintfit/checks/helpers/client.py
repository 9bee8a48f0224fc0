"""Whether DeepSpeed builds what its JSON describes, or a script hands over an optimizer or scheduler of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from lintfit.checks.helpers.readers import milder, reader_of
from lintfit.findings.model import Severity
from lintfit.run.model import Run


def handed_over(runs: Iterable[Run], what: Literal["optimizer", "lr_scheduler"]) -> bool:
    """Whether a script gives ``deepspeed.initialize`` one of its own, so that the JSON's is not built."""
    for run in runs:
        call = run.script.facts.initialize if run.script is not None else None
        if call is not None and call.name == "initialize" and (call.spreads or what in call.arguments):
            return True
    return False


def severity(runs: Sequence[Run]) -> Severity:
    """An error where a script is known to have the JSON's built, a warning where none is."""
    return Severity.ERROR if reader_of(runs) is not None else milder(Severity.ERROR)
