"""One line per finding: ``path:line:col: severity rule [*] message``."""

from __future__ import annotations

from lintfit.findings.results import CheckResult
from lintfit.report import View, clean, fixable, in_cell, shown_path
from lintfit.report.summary import fixed_lines, statistics_lines, summary_lines


def render(result: CheckResult, view: View) -> str:
    """The findings as lines, then the summary."""
    lines = []
    if view.show_fixes and result.fixed:
        lines += fixed_lines(result.fixed, view)
    if view.statistics:
        lines += statistics_lines(result, view)
    else:
        for finding in result.findings:
            place = finding.place
            at = place.document.position(place.span.start)
            mark = " [*]" if fixable(finding, view.unsafe_fixes) else ""
            where = f"{clean(shown_path(place.document.path))}:{at.line}:{at.column}"
            lines.append(
                f"{where}: {finding.severity} {finding.rule} ({finding.code}){mark} "
                f"{one_line(finding.message)}{in_cell(place)}"
            )
    lines += [one_line(note) for note in result.notes]
    lines += summary_lines(result, view)
    return "".join(f"{line}\n" for line in lines)


def one_line(message: str) -> str:
    """The message without line breaks and control characters."""
    return " ".join(clean(message).split())
