"""The closing lines of a report and the counts in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lintfit.findings import Applicability, Finding, Severity
from lintfit.report import View, fixable, shown_path
from lintfit.results import CheckResult

_NAMED = 3
"""Rules that the line on what is not shown names."""


def summary_lines(result: CheckResult, view: View) -> list[str]:
    """``Found 3 errors, 1 warning (2 info).``, what is not shown, and how many a flag would mend.

    None at all where no file could be read: the errors say it.
    """
    if result.errors and not (result.files_read or result.findings or result.fixed):
        return []
    lines = [_found(result, view), *_hidden(result)]
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
    where = " in the files that could be read" if result.errors else ""
    other = "other " if result.ignored or result.baselined else ""
    return f"{fixed}All {other}checks passed{where}{f' ({infos})' if infos else ''}."


def _hidden(result: CheckResult) -> list[str]:
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


def plural(count: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def statistics_lines(result: CheckResult, view: View) -> list[str]:
    """One line per rule, the most frequent first: count, code, ``[*]`` where all its findings are fixable, name.

    Then how many fixes were taken back because the files, read again with them, were not what they claimed.
    """
    findings = result.findings
    by_rule = Counter((finding.code, finding.rule) for finding in findings)
    lines = []
    for (code, rule), count in sorted(by_rule.items(), key=lambda item: (-item[1], item[0])):
        mark = all(fixable(finding, view.unsafe_fixes) for finding in findings if finding.rule == rule)
        lines.append(f"{count:>5}  {code}  {'[*]' if mark else '[ ]'} {rule}")
    refused = result.refused_fixes
    return [*lines, f"{refused:>5}  {'fix' if refused == 1 else 'fixes'} not offered: read again, not as claimed"]


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
