"""Findings that say the same of several places: the first in full, the others named behind it."""

from __future__ import annotations

from collections.abc import Sequence

from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Finding
from lintfit.report import Line, View
from lintfit.report.rows import Shown, finding_row, place_of, row_lines
from lintfit.report.styled import cells, wrapped

_FIGURES = lazy_pattern(r"\d[\d.,]*")
_UP = lazy_pattern(r"(\.\./)+")
_INDENT = 4
"""Columns by which the other places stand further in."""


def alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings by what they say, figures apart, the worst first."""
    found: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        fix = finding.fix.applicability if finding.fix is not None else None
        says = _UP.sub("", _FIGURES.sub("…", finding.message))
        found.setdefault((finding.rule, finding.severity, fix, says), []).append(finding)
    return sorted(found.values(), key=lambda group: -group[0].severity)


def alike_lines(findings: Sequence[Finding], shown: Shown, view: View, indent: int) -> list[Line]:
    """The findings as rows, each kind once."""
    groups = alike(findings)
    if all(len(group) == 1 for group in groups):
        return row_lines([finding_row(group[0], shown) for group in groups], view, indent)
    lines: list[Line] = []
    for group in groups:
        lines += row_lines([finding_row(group[0], shown)], view, indent)
        if others := _others(group, shown):
            lines.append(_likewise(others, view, indent + _INDENT))
    return lines


def _others(group: Sequence[Finding], shown: Shown) -> list[str]:
    """Where the further findings stand; of those at the same place which runs they are about."""
    first = place_of(group[0], shown)
    places = [place_of(finding, shown) for finding in group[1:]]
    names = [finding.run or "" if place == first else place for finding, place in zip(group[1:], places, strict=True)]
    return [name for name in dict.fromkeys(names) if name]


def _likewise(names: Sequence[str], view: View, indent: int) -> Line:
    """``likewise a.sh:3, b.sh:3 and 4 more``, in one line."""
    lead: Line = [(" " * indent, ""), ("likewise ", "dim")]
    most = max(view.width, indent + 20)  # each takes a column at least
    for count in range(min(len(names), most), 0, -1):
        more = f" and {len(names) - count} more" if count < len(names) else ""
        lines = wrapped(lead, f"{', '.join(names[:count])}{more}", view.width, indent)
        if len(lines) == 1 and sum(cells(text) for text, _ in lines[0]) <= view.width:
            break
    return lines[0]
