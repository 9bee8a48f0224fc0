"""A repository of many runs: those that fit are told by file or folder, and what is not judged by its main reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Verdict
from lintfit.report import Line, View
from lintfit.report.bars import VERDICT_STYLES
from lintfit.report.figures import short_gib
from lintfit.report.styled import wrapped
from lintfit.report.summary import plural

CROWD = 30
"""Runs with a verdict from which on a report tells those that fit together."""
BLOCKS = 1
"""Runs that it then shows whole."""
REASONS = 3
"""Reasons for no verdict that it then tells."""
_LINES = 10
"""Lines for runs that fit; where they would be more, folders stand for files."""
_DEEP = 2
"""Folders from the top by which they are then told."""


def is_crowd(result: CheckResult, view: View) -> bool:
    """Whether there are so many runs with a verdict that a person asks for those that need work."""
    return not view.verbose and sum(not run.is_unknown for run in result.runs) > CROWD


def quiet_ones(result: CheckResult, view: View) -> list[RunResult]:
    """The runs that are told together: of a crowd those that fit."""
    return [run for run in result.runs if run.verdict is Verdict.FITS] if is_crowd(result, view) else []


def together(runs: Sequence[RunResult], view: View) -> list[Line]:
    """``docs/clis.md: 21 runs fit, 7.2 to 56.7 of 79.1 GiB``, a line for each file, or for each folder."""
    by_file = dict(_grouped(runs, lambda run: run.run.id.rpartition(":")[0] or run.run.id))
    named = by_file if len(by_file) <= _LINES else dict(_grouped(runs, _folder))
    return [line for name, found in named.items() for line in _line(name, found, view)]


def _grouped(runs: Sequence[RunResult], key: Callable[[RunResult], str]) -> Iterator[tuple[str, list[RunResult]]]:
    found: dict[str, list[RunResult]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    yield from found.items()


def _folder(run: RunResult) -> str:
    folders = PurePosixPath(run.run.id.rpartition(":")[0] or run.run.id).parent.parts[:_DEEP]
    return "".join(f"{folder}/" for folder in folders) or "./"


def _line(name: str, runs: Sequence[RunResult], view: View) -> list[Line]:
    peaks = [run.estimate.peak.likely for run in runs if run.estimate is not None]
    capacities = {run.estimate.capacity_bytes for run in runs if run.estimate is not None}
    capacity = capacities.pop() if len(capacities) == 1 else None
    of = f" of {short_gib(capacity)}" if capacity is not None else ""
    least, most = short_gib(min(peaks, default=0)), short_gib(max(peaks, default=0))
    span = most if least == most else f"{least} to {most}"
    verb = "fits" if len(runs) == 1 else "fit"
    lead: Line = [(name, "path"), (": ", ""), (f"{plural(len(runs), 'run')} {verb}", VERDICT_STYLES[Verdict.FITS])]
    return wrapped(lead, f", {span}{of} GiB", view.width, 4)
