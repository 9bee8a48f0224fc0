"""A repository of many runs: those that fit are told by file or folder, and what is not judged by its main reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from lintfit.findings.model import Finding
from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Verdict
from lintfit.report import Line, View
from lintfit.report.bars import VERDICT_STYLES
from lintfit.report.figures import short_gib
from lintfit.report.styled import wrapped
from lintfit.report.summary import plural

CROWD = 30
"""Runs with a verdict, or with the GPUs that would do, from which on a report tells those that fit together."""
BLOCKS = 1
"""Runs that it then shows whole."""
MANY = 10
"""Runs that need work, and kinds of warnings, from which on these, too, are told in few lines."""
REASONS = 3
"""Reasons for no verdict that it then tells."""
_LINES = 10
"""Lines for runs that fit; where they would be more, folders stand for files."""
_DEEP = 2
"""Folders from the top by which they are then told."""


def is_crowd(result: CheckResult, view: View) -> bool:
    """Whether so many runs are told of that a person asks for those that need work."""
    return not view.verbose and sum(not run.is_unknown or bool(run.would_fit) for run in result.runs) > CROWD


def quiet_ones(result: CheckResult, view: View) -> list[RunResult]:
    """The runs that are told together: of a crowd those that fit."""
    return [run for run in result.runs if run.verdict is Verdict.FITS] if is_crowd(result, view) else []


def in_brief(result: CheckResult, view: View) -> list[RunResult]:
    """The runs that are told by file: of a crowd those that need work, where they are many."""
    need = [run for run in result.runs if run.verdict in (Verdict.DOES_NOT_FIT, Verdict.TIGHT)]
    return need if is_crowd(result, view) and len(need) > MANY else []


def by_file(runs: Sequence[RunResult], view: View) -> list[Line]:
    """``docs/clis.md:42, :119 51.0 → 15.9; :80 31.1 → 17.2``: what each needs, and with the plan that it has."""
    lines: list[Line] = []
    for verdict, verb in ((Verdict.DOES_NOT_FIT, "do not fit"), (Verdict.TIGHT, "are tight")):
        found = [run for run in runs if run.verdict is verdict]
        head = f"{plural(len(found), 'run')} {verb}; likely GiB, → with a plan (lintfit check FILE shows it):"
        lines += wrapped([], head, view.width, 2, VERDICT_STYLES[verdict]) if found else []
        for name, own in _grouped(found, lambda run: run.run.id.rpartition(":")[0] or run.run.id):
            needs = _needs(own)
            apart = "" if needs.startswith(":") else " "
            lines += wrapped([("  ", ""), (f"{name}{apart}", "path")], needs, view.width, 4)
    return lines


def _needs(runs: Sequence[RunResult]) -> str:
    """The launches of one file by what they need."""
    told = []
    for needs, same in _grouped(runs, _need):
        lines = [f":{line}" for _, colon, line in (run.run.id.rpartition(":") for run in same) if colon]
        told.append(" ".join([", ".join(lines), needs]).strip())
    return "; ".join(told)


def _need(run: RunResult) -> str:
    now = short_gib(run.estimate.peak.likely) if run.estimate is not None else ""
    return now if run.plan is None else f"{now} → {short_gib(run.plan.estimate.peak.likely)}"


def warnings_by_rule(findings: Sequence[Finding], view: View) -> list[Line]:
    """``91 warnings: logits-dominate (30), …``, the most frequent first."""
    counts = Counter(finding.rule for finding in findings)
    each = ", ".join(f"{rule} ({count})" if count > 1 else rule for rule, count in counts.most_common())
    text = f": {each} (--verbose, or --output-format concise, tells each)"
    return wrapped([(plural(len(findings), "warning"), "note")], text, view.width, 2)


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
