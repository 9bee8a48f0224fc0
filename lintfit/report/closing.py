"""How the report for people ends: what was not judged and why, and one line with all counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lintfit.findings.model import Severity
from lintfit.findings.results import CheckResult
from lintfit.memory.result import Verdict
from lintfit.report import Line, View, fixable
from lintfit.report.figures import WORDS
from lintfit.report.styled import wrapped
from lintfit.report.summary import (
    is_config,
    judged,
    plural,
    skipped_files,
    unknown_runs,
    without_files,
    without_gpu,
)
from lintfit.verdict.reasons import GPU, NOT_MODELLED, family

_NAMED = 3
"""Runs or files that a line names."""
_MANY = 6
"""Reasons of which each run is told with all of its own."""
_LINES = 2
"""Lines of a reason that is told of several."""
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
    infos = [f"{counts[Severity.INFO]} info"] if counts[Severity.INFO] else []
    worse = [plural(counts[each], str(each)) for each in (Severity.ERROR, Severity.WARNING) if counts[each]]
    if worse:
        return ", ".join([*worse, *infos])
    if not judged(result):
        return f"Nothing was judged{f' ({infos[0]})' if infos else ''}"
    if result.skipped or any(run.verdict is not Verdict.FITS and not is_config(run) for run in result.runs):
        return infos[0] if infos else "No findings"
    other = "other " if result.ignored or result.baselined else ""
    where = " in the files that could be read" if result.errors else ""
    return f"All {other}checks passed{where}{f' ({infos[0]})' if infos else ''}"


def _files(result: CheckResult) -> str:
    read = f"{plural(result.files_read, 'file')} read"
    if result.files_read and not result.runs and not result.skipped and not judged(result):
        return f"{read}, no launch, script or config among them"
    return f"{read}, {len(result.skipped) or 'none'} skipped"


def not_judged(result: CheckResult, alone: bool, view: View, most: int | None = None) -> Iterator[Line]:
    """What keeps runs from a verdict and files from being understood, for each reason no more than two lines; ``most``
    of them, and how many there are else.

    Runs that lack a file which a finding speaks of are left out, and one that stands ``alone``: its block says it.
    """
    told = set(without_files(result)) | ({run.run.id for run in result.runs} if alone else set())
    together = {run.run.id for run in without_gpu(result, view)}
    runs = [(name, reason) for name, reason in unknown_runs(result) if name not in told | together]
    yield from _by_reason("run", "not judged", runs, view, most)
    yield from _by_reason("file", "skipped", skipped_files(result), view, most)


def _by_reason(noun: str, how: str, pairs: Sequence[tuple[str, str]], view: View, most: int | None) -> Iterator[Line]:
    told = [(name, reason, *family(reason)) for name, reason in pairs]
    families: dict[str, list[tuple[str, str, str]]] = {}
    for name, reason, shared, own in _once(told):
        families.setdefault(shared, []).append((name, reason, own))
    in_order = sorted(families.items(), key=lambda item: -len(item[1]))
    shown = in_order if most is None or len(in_order) <= most + 1 else in_order[:most]
    for shared, found in shown:
        same = {reason for _, reason, _ in found}
        names = list(dict.fromkeys(name for name, _, _ in found))
        count = f"{plural(len(names), noun)} {how}"
        values = Counter(value for *_, value in found if value)
        if len(same) == 1:
            yield from _reason(count, [same.pop()], names, view)
        else:
            yield from _reason(count, list(_filled(shared, values)) or [shared], names, view)
    rest = {name for _, found in in_order[len(shown) :] for name, *_ in found}
    if rest:
        more = f"{plural(len(rest), noun)} {how}"
        yield [
            (more, "note"),
            (f" for {len(in_order) - len(shown)} other reasons: --verbose, or lintfit check FILE", ""),
        ]


def _once(told: Sequence[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    """Where there are many reasons, of each run that has several the one that most have; one that nothing can be done
    about before all others. What all lack, a GPU, stays."""
    counts = Counter(shared for _, _, shared, _ in told)
    if len(counts) <= _MANY:
        return list(told)
    weight = {shared: (shared.startswith(NOT_MODELLED), count) for shared, count in counts.items()}
    best: dict[str, str] = {}
    for name, reason, shared, _ in told:
        if not reason.startswith(GPU) and (name not in best or weight[shared] > weight[best[name]]):
            best[name] = shared
    return [each for each in told if each[1].startswith(GPU) or best[each[0]] == each[2]]


def _filled(shared: str, own: Counter[str]) -> Iterator[str]:
    """The reason with all that it is said of, the most frequent first, and with fewer of it; nothing where that is not
    known."""
    each = [f"{what} ({count})" if count > 1 else what for what, count in own.most_common()]
    for shown in range(len(each), 0, -1):
        more = f" and {len(each) - shown} more" if shown < len(each) else ""
        yield shared.replace("…", f"{', '.join(each[:shown])}{more}", 1)


def _reason(count: str, reasons: Sequence[str], names: Sequence[str], view: View) -> list[Line]:
    """``12 runs not judged: the model (--model): a.py, b.py, …``, with as many names as there is room for: in the one
    line that the reason takes, else in two. Where it names what it is said of, it needs no names."""
    lead: Line = [(count, "note"), (": ", "")]
    if len(reasons) > 1:
        return _shortest(lead, reasons, view, [_LINES + 1])
    shown = range(min(len(names), _NAMED), 0, -1)
    texts = [f"{reasons[0]}: {', '.join(names[:each])}{', …' if len(names) > each else ''}" for each in shown]
    alone = len(wrapped(lead, reasons[0], view.width, 2))
    return _shortest(lead, texts, view, [min(alone, _LINES), _LINES])


def _shortest(lead: Line, texts: Sequence[str], view: View, most: Sequence[int]) -> list[Line]:
    """The first of the texts that takes no more than so many lines, or than the next number of them; or the last."""
    found = [wrapped(lead, text, view.width, 2) for text in texts]
    return next((each for lines in most for each in found if len(each) <= lines), found[-1])


def fix_line(result: CheckResult) -> list[str]:
    """What to type for the fixes, where no plan says it."""
    if any(run.plan is not None and run.plan.fix.edits for run in result.runs):
        return []
    safe = sum(fixable(finding, False) for finding in result.findings)
    unsafe = sum(fixable(finding, True) for finding in result.findings) - safe
    parts = [f"{plural(safe, 'safe fix', 'safe fixes')}: lintfit check --fix"] if safe else []
    parts += [f"{plural(unsafe, 'unsafe fix', 'unsafe fixes')}: lintfit check --fix --unsafe-fixes"] if unsafe else []
    return ["; ".join(parts)] if parts else []
