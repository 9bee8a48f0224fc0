"""Findings as rows: where, what and which rule, a line or two each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lintfit.findings.model import Applicability, Finding
from lintfit.frozen import frozen
from lintfit.report import Line, View, clean
from lintfit.report.styled import cells, plain, wrapped

Shown = Callable[[Path], str]
"""How a path is shown."""

_LINES = 2
"""Lines of a row; what does not go into them ``--verbose`` has."""
_WIDEST = 40
"""Columns that the places of a block take at most; a longer one has a line to itself."""
_GAP = 3
_LEAST = 24
"""Columns that a text has at least."""


@frozen
class Row:
    """One finding: its place, texts of which the first that fits is taken, and what stands at the end."""

    where: str
    texts: tuple[str, ...]
    tail: str = ""
    style: str = ""
    label: str = ""


def finding_row(finding: Finding, shown: Shown) -> Row:
    """``train.py:12  warning: message; what to do   rule (safe fix)``"""
    return Row(place_of(finding, shown), tuple(_texts(finding)), _tail(finding), str(finding.severity), _label(finding))


def cause_row(finding: Finding, shown: Shown) -> Row:
    """``train.py:12  what it costs   rule``: of a cause it matters what it is, the plan says what to do."""
    return Row(place_of(finding, shown), (first_clause(finding.message),), finding.rule)


def place_of(finding: Finding, shown: Shown) -> str:
    """``train.py:12``"""
    place = finding.place
    return f"{clean(shown(place.document.path))}:{place.document.position(place.span.start).line}"


def row_lines(rows: Sequence[Row], view: View, indent: int) -> list[Line]:
    """The rows with their texts below each other."""
    column = max((cells(row.where) for row in rows if cells(row.where) <= _WIDEST), default=0)
    start = indent + column + 2
    room = max(view.width - start, _LEAST)
    bodies = [_body(row, room) for row in rows]
    ends = [cells(_text_of(body[0])) for body in bodies if len(body) == 1]
    fitting = [end for end, row in zip(ends, rows, strict=False) if end + _GAP + cells(row.tail) <= room]
    aligned = max(fitting, default=0)
    lines: list[Line] = []
    for row, body in zip(rows, bodies, strict=True):
        lines += _placed(row, _with_tail(row, body, aligned, room), indent, column)
    return lines


def _label(finding: Finding) -> str:
    return f"{finding.severity}: "


def _texts(finding: Finding) -> Iterator[str]:
    """What there is to say, the longest first."""
    advice = finding.fix.message if finding.fix is not None else finding.help
    message, clause = finding.message, first_clause(finding.message)
    if advice:
        yield f"{message}; {advice}"
    yield message
    if advice:
        yield f"{clause}; {advice}"
    yield clause


def first_clause(message: str) -> str:
    """A message up to its first semicolon outside of parentheses."""
    depth = 0
    for index, character in enumerate(message):
        depth += (character in "([") - (character in ")]")
        if character == ";" and depth == 0:
            return message[:index]
    return message


def _tail(finding: Finding) -> str:
    fix = finding.fix
    if fix is None or not fix.edits or fix.applicability is Applicability.DISPLAY:
        return finding.rule
    return f"{finding.rule} ({fix.applicability} fix)"


def _body(row: Row, room: int) -> list[Line]:
    """The first of the texts that takes no more than its lines; the last of them cut short where none does."""
    lead: Line = [(row.label, row.style)] if row.label else []
    for text in row.texts:
        lines = wrapped(lead, text, room, 0)
        if _fits(row, lines, room):
            return lines
    words = row.texts[-1].split()
    while len(words) > 1:
        words.pop()
        lines = wrapped(lead, f"{' '.join(words)} …", room, 0)
        if _fits(row, lines, room):
            return lines
    return wrapped(lead, row.texts[-1], room, 0)


def _fits(row: Row, lines: Sequence[Line], room: int) -> bool:
    used = cells(_text_of(lines[-1])) + _GAP + cells(row.tail) if row.tail else 0
    return len(lines) + (used > room) <= _LINES


def _with_tail(row: Row, body: list[Line], aligned: int, room: int) -> list[Line]:
    if not row.tail:
        return body
    used = cells(_text_of(body[-1]))
    if used + _GAP + cells(row.tail) > room:
        return [*body, [(row.tail, "dim")]]
    align = max(aligned - used, 0) if len(body) == 1 and aligned + _GAP + cells(row.tail) <= room else 0
    return [*body[:-1], [*body[-1], (" " * (align + _GAP), ""), (row.tail, "dim")]]


def _placed(row: Row, body: Sequence[Line], indent: int, column: int) -> Iterator[Line]:
    behind = " " * (indent + column + 2)
    if cells(row.where) > column:
        yield [(" " * indent, ""), (row.where, "path")]
        yield from ([(behind, ""), *line] for line in body)
        return
    pad = " " * (column - cells(row.where) + 2)
    yield [(" " * indent, ""), (row.where, "path"), (pad, ""), *body[0]]
    yield from ([(behind, ""), *line] for line in body[1:])


def _text_of(line: Line) -> str:
    return plain([line]).rstrip("\n")
