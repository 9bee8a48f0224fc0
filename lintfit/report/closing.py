"""How the report for people ends: what was not judged and why, and one line with all counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lintfit.findings.model import Severity
from lintfit.findings.results import CheckResult
from lintfit.memory.result import Verdict
from lintfit.report import View, clean, fixable
from lintfit.report.figures import WORDS
from lintfit.report.summary import nothing_judged, plural, skipped_files, unknown_runs, without_files
from lintfit.verdict.reasons import family

_NAMED = 3
"""Runs or files that a line names."""
_ORDER = (Verdict.DOES_NOT_FIT, Verdict.TIGHT, Verdict.FITS, Verdict.UNKNOWN)


def closing_line(result: CheckResult, view: View) -> str:
    """``1 run: 1 does not fit. 3 errors, 2 warnings. 3 files read, none skipped.``

    Nothing at all where no file could be read: the errors say it.
    """
    if result.errors and not (result.files_read or result.findings or result.fixed or result.skipped):
        return ""
    done = "Would fix" if view.diff else "Fixed"
    fixed = [f"{done} {plural(len(result.fixed), 'finding')}."] if result.fixed else []
    return " ".join([*fixed, *_runs(result), f"{_findings(result)}.", f"{_files(result)}."])


def _runs(result: CheckResult) -> list[str]:
    counts = Counter(run.verdict for run in result.runs)
    parts = [f"{counts[verdict]} {_verb(verdict, counts[verdict])}" for verdict in _ORDER if counts[verdict]]
    return [f"{plural(len(result.runs), 'run')}: {', '.join(parts)}."] if parts else []


def _verb(verdict: Verdict, count: int) -> str:
    many = {Verdict.FITS: "fit", Verdict.DOES_NOT_FIT: "do not fit"}
    return many.get(verdict, WORDS[verdict]) if count > 1 else WORDS[verdict]


def _findings(result: CheckResult) -> str:
    counts = Counter(finding.severity for finding in result.findings)
    infos = f"{counts[Severity.INFO]} info" if counts[Severity.INFO] else ""
    worse = [plural(counts[each], str(each)) for each in (Severity.ERROR, Severity.WARNING) if counts[each]]
    if worse:
        return ", ".join([*worse, *([infos] if infos else [])])
    return f"{nothing_judged(result)}{f' ({infos})' if infos else ''}"


def _files(result: CheckResult) -> str:
    return f"{plural(result.files_read, 'file')} read, {len(result.skipped) or 'none'} skipped"


def not_judged(result: CheckResult, alone: bool) -> Iterator[str]:
    """A line for each reason why runs have no verdict, and for each why files were not understood.

    Runs that lack a file which a finding speaks of are left out, and one that stands ``alone``: its block says it.
    """
    told = set(without_files(result)) | ({run.run.id for run in result.runs} if alone else set())
    runs = [(name, family(reason)) for name, reason in unknown_runs(result) if name not in told]
    yield from _by_reason("run", "not judged", runs)
    yield from _by_reason("file", "skipped", skipped_files(result))


def _by_reason(noun: str, how: str, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    names: dict[str, list[str]] = {}
    for name, reason in pairs:
        names.setdefault(reason, []).append(name)
    for reason, found in sorted(names.items(), key=lambda item: -len(item[1])):
        if len(found) == 1:
            yield clean(f"{found[0]} {how}: {reason}")
            continue
        more = ", …" if len(found) > _NAMED else ""
        yield clean(f"{plural(len(found), noun)} {how}: {reason}: {', '.join(found[:_NAMED])}{more}")


def fix_line(result: CheckResult, view: View) -> list[str]:
    """What to type for the fixes, where no plan says it."""
    if any(run.plan is not None and run.plan.fix.edits for run in result.runs):
        return []
    safe = sum(fixable(finding, False) for finding in result.findings)
    unsafe = sum(fixable(finding, True) for finding in result.findings) - safe
    parts = [f"{plural(safe, 'safe fix', 'safe fixes')}: lintfit check --fix"] if safe else []
    parts += [f"{plural(unsafe, 'unsafe fix', 'unsafe fixes')}: lintfit check --fix --unsafe-fixes"] if unsafe else []
    return ["; ".join(parts)] if parts else []
