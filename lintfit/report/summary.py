"""The closing lines of a report and the counts in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence

from lintfit.findings.model import Applicability, Finding, Severity
from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Verdict
from lintfit.report import View, clean, fixable, shown_path
from lintfit.verdict.reasons import family

_NAMED = 3
"""Rules that the line on what is not shown names."""

_FOLDED = 4
"""Files or runs that a line names."""

MOST_IN_SHORT = 8
"""Runs without a GPU that take a line or two each; more are told together."""

UNKNOWN_RULE = "memory-unknown"
"""The rule that says of a run why it has no verdict."""
_OF_FILES = frozenset({"missing-file", "syntax-error"})
"""Rules that say which files are not there or broken; one that several runs name is told once."""


def summary_lines(result: CheckResult, view: View, folded: Container[str] = ()) -> list[str]:
    """``Found 3 errors, 1 warning (2 info).``, what was not judged and why, what is not shown, and how many a flag
    would mend.

    None at all where no file could be read: the errors say it. ``folded`` are runs whose findings are not shown.
    """
    first, *others = counts_lines(result, view) or [""]
    return [first, *not_judged_lines(result, view, folded), *others] if first else []


def counts_lines(result: CheckResult, view: View) -> list[str]:
    """:func:`summary_lines` without what was not judged."""
    if result.errors and not (result.files_read or result.findings or result.fixed or result.skipped):
        return []
    lines = [_found(result, view), *hidden_lines(result)]
    ready = sum(fixable(finding, view.unsafe_fixes) for finding in result.findings)
    more = 0 if view.unsafe_fixes else sum(fixable(finding, True) for finding in result.findings) - ready
    flags = "--fix --unsafe-fixes" if view.unsafe_fixes else "--fix"
    if ready and more:
        lines.append(f"[*] {ready} fixable with `{flags}` ({more} more with `--fix --unsafe-fixes`).")
    elif ready:
        lines.append(f"[*] {ready} fixable with `{flags}`.")
    elif more:
        lines.append(f"{more} fixable with `--fix --unsafe-fixes`.")
    return lines


def not_judged_lines(result: CheckResult, view: View, folded: Container[str] = ()) -> list[str]:
    """A line for each reason why runs have no verdict, and for each why files were not understood.

    Runs of which a finding says it that is shown are left out; ``--statistics`` count them all.
    """
    if view.statistics:
        return []
    findings = result.findings
    told = {finding.run for finding in findings if finding.rule == UNKNOWN_RULE and (finding.run or "") not in folded}
    told |= set(without_files(result))
    runs = [(name, reason) for name, reason in unknown_runs(result) if name not in told]
    return [*_by_reason("unknown", runs), *_by_reason("skipped", skipped_files(result))]


def without_files(result: CheckResult) -> Iterator[str]:
    """The runs that lack a file of theirs: a finding at the file, or where it is named, says so."""
    said = {finding.place.document.path for finding in result.findings if finding.rule in _OF_FILES}
    for run in result.runs:
        named = {each.place.document.path for each in run.run.missing if each.place is not None}
        if said & (named | {document.path for document in run.run.broken}):
            yield run.run.id


def unknown_runs(result: CheckResult) -> list[tuple[str, str]]:
    """Runs without a verdict and why, a pair for each reason.

    What is not known of a config on its own, the run that uses it will tell.
    """
    return [
        (run.run.id, reason) for run in result.runs if run.is_unknown and not is_config(run) for reason in run.unknown
    ]


def without_gpu(result: CheckResult, view: View) -> list[RunResult]:
    """The runs that are told together by the GPUs on which they would fit, where there are many."""
    found = [run for run in result.runs if run.would_fit]
    return found if len(found) > MOST_IN_SHORT and not view.verbose else []


def is_config(run: RunResult) -> bool:
    """Whether it is no more than a config on its own, whose keys alone are checked."""
    return run.estimate is None and run.run.origin.kind == "config"


def skipped_files(result: CheckResult) -> list[tuple[str, str]]:
    """Files that were not understood, and why."""
    return [(shown_path(each.path), each.reason) for each in result.skipped]


def _by_reason(word: str, pairs: Sequence[tuple[str, str]]) -> list[str]:
    names: dict[str, list[str]] = {}
    for name, reason in pairs:
        names.setdefault(reason, []).append(name)
    return [clean(f"{word}: {_folded(found)}: {reason}") for reason, found in names.items()]


def _folded(names: Sequence[str]) -> str:
    """``a.yaml``, ``a.yaml, b.yaml (2)``, ``a.yaml, b.yaml, c.yaml, d.yaml, … (12)``."""
    if len(names) == 1:
        return names[0]
    more = ", …" if len(names) > _FOLDED else ""
    return f"{', '.join(names[:_FOLDED])}{more} ({len(names)})"


def _found(result: CheckResult, view: View) -> str:
    counts = Counter(finding.severity for finding in result.findings)
    parts = [
        plural(counts[severity], str(severity)) for severity in (Severity.ERROR, Severity.WARNING) if counts[severity]
    ]
    infos = f"{counts[Severity.INFO]} info" if counts[Severity.INFO] else ""
    done = "Would fix" if view.diff else "Fixed"
    fixed = f"{done} {plural(len(result.fixed), 'finding')}. " if result.fixed else ""
    if parts:
        return f"{fixed}Found {', '.join(parts)}{f' ({infos})' if infos else ''}."
    return f"{fixed}{_nothing_found(result)}{f' ({infos})' if infos else ''}."


def _nothing_found(result: CheckResult) -> str:
    """``All checks passed``, where anything was checked; otherwise what there was."""
    where = " in the files that could be read" if result.errors else ""
    if not judged(result):
        return f"Nothing was judged{where}: {_seen(result)}"
    other = "other " if result.ignored or result.baselined else ""
    if any(run.verdict in (Verdict.TIGHT, Verdict.DOES_NOT_FIT) for run in result.runs):
        return f"No {other}errors or warnings{where}, and a run that may not fit"
    return f"All {other}checks passed{where}"


def judged(result: CheckResult) -> bool:
    """Whether a run got a verdict, or the keys of a config were checked."""
    found = result.configs or result.fixed or result.ignored or result.baselined
    return bool(found) or any(not run.is_unknown for run in result.runs)


def _seen(result: CheckResult) -> str:
    """``3 files read, no launch, script or config among them``."""
    files = f"{plural(result.files_read, 'file')} read"
    if not result.runs and not result.skipped:
        return f"{files}, no launch, script or config among them" if result.files_read else files
    runs = [f"{plural(len(result.runs), 'run')} without a verdict"] if result.runs else []
    skipped = [f"{len(result.skipped)} skipped"] if result.skipped else []
    return ", ".join([files, *skipped, *runs])


def hidden_lines(result: CheckResult) -> list[str]:
    """What comments and the baseline keep out of the report: nothing is silenced in silence."""
    parts = [
        f"{_by_severity(findings)} {how} ({_rules(findings)})"
        for findings, how in ((result.ignored, "ignored by a comment"), (result.baselined, "in the baseline"))
        if findings
    ]
    return [f"Not shown: {'; '.join(parts)}."] if parts else []


def _by_severity(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    infos = [f"{counts[Severity.INFO]} info"] if counts[Severity.INFO] else []
    worse = [
        plural(counts[severity], str(severity)) for severity in (Severity.ERROR, Severity.WARNING) if counts[severity]
    ]
    return ", ".join([*worse, *infos])


def _rules(findings: Sequence[Finding]) -> str:
    names = list(dict.fromkeys(finding.rule for finding in sorted(findings, key=lambda finding: -finding.severity)))
    return ", ".join([*names[:_NAMED], *([f"and {len(names) - _NAMED} more rules"] if len(names) > _NAMED else [])])


def plural(count: int, noun: str, many: str = "") -> str:
    """``1 error``, ``2 errors``; ``many`` where the plural is no ``s`` more."""
    return f"{count} {noun if count == 1 else many or f'{noun}s'}"


def statistics_lines(result: CheckResult, view: View) -> list[str]:
    """One line per rule, the most frequent first: count, code, ``[*]`` where all its findings are fixable, name.

    Then how many runs have no verdict and how many files were not understood, a line for each reason, and how many
    fixes were taken back because the files, read again with them, were not what they claimed.
    """
    findings = result.findings
    by_rule = Counter((finding.code, finding.rule) for finding in findings)
    lines = []
    for (code, rule), count in sorted(by_rule.items(), key=lambda item: (-item[1], item[0])):
        mark = all(fixable(finding, view.unsafe_fixes) for finding in findings if finding.rule == rule)
        lines.append(f"{count:>5}  {code}  {'[*]' if mark else '[ ]'} {rule}")
    lines += _reasons("unknown", unknown_runs(result))
    lines += _reasons("skipped", skipped_files(result))
    refused = result.refused_fixes
    return [*lines, f"{refused:>5}  {'fix' if refused == 1 else 'fixes'} not offered: read again, not as claimed"]


def _reasons(word: str, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """``   12  unknown  the model (--model)``: the runs or files of each kind of reason, the most frequent first."""
    names: dict[str, set[str]] = {}
    for name, reason in pairs:
        names.setdefault(family(reason)[0], set()).add(name)
    in_order = sorted(names.items(), key=lambda item: (-len(item[1]), item[0]))
    return [clean(f"{len(found):>5}  {word}  {reason}") for reason, found in in_order]


def fixed_lines(fixed: Sequence[Finding], view: View) -> list[str]:
    """``--show-fixes``: what was mended, by file and rule."""
    by_file: dict[str, Counter[tuple[str, str, bool]]] = {}
    for finding in fixed:
        unsafe = finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE
        path = shown_path(finding.place.document.path)
        by_file.setdefault(path, Counter())[(finding.rule, finding.code, unsafe)] += 1
    lines = [f"{'Would fix' if view.diff else 'Fixed'} {plural(len(fixed), 'finding')}:"]
    for path, rules in sorted(by_file.items()):
        lines.append(f"- {path}:")
        for (rule, code, unsafe), count in sorted(rules.items()):
            lines.append(f"    {count} × {rule} ({code}){' unsafe' if unsafe else ''}")
    return lines
