"""Findings as rows: where, what and which rule, a line or two each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lintfit.findings.model import Applicability, Finding
from lintfit.frozen import frozen, replace
from lintfit.report import Line, View, clean, in_cell
from lintfit.report.styled import cells, plain, wrapped

Shown = Callable[[Path], str]
"""How a path is shown."""

LINES = 2
"""Lines of a row; what does not go into them ``--verbose`` has."""
WHOLE = 6
"""Lines of a row where a run stands alone and has little to say."""
_WIDEST = 0.28
"""Share of the width that the places of a block take at most; behind a longer one its text follows at once."""
_GAP = 3
_HANGING = 4
"""Columns by which the second line of such a row stands further in."""
_WIDE = 100
"""Columns below which a row has a line more, to say what to do."""
_MEANT = "did you mean"
_WORDS = 5
"""Words of a message that are told at least before what to do."""


@frozen
class Row:
    """One finding: its place, texts of which the first that fits is taken, what to do, and its rule at the end."""

    where: str
    texts: tuple[str, ...]
    advice: str = ""
    tail: str = ""
    label: str = ""
    style: str = ""


def finding_row(finding: Finding, shown: Shown) -> Row:
    """``train.py:12  warning: message; what to do   rule (safe fix)``"""
    severity = str(finding.severity)
    advice = finding.fix.message if finding.fix is not None else finding.help
    texts = tuple(dict.fromkeys((finding.message, first_clause(finding.message))))
    return Row(place_of(finding, shown), texts, advice, _tail(finding), f"{severity}: ", severity)


def cause_row(finding: Finding, shown: Shown) -> Row:
    """``train.py:12  what it costs   rule``: of a cause it matters what it is, the plan says what to do."""
    return Row(place_of(finding, shown), (first_clause(finding.message),), tail=finding.rule)


def reason_row(reason: str, finding: Finding | None, shown: Shown) -> Row:
    """Why there is no verdict; ``run.sh:3  error: the reason   rule`` where a finding says the same, in its own words
    where these say what was meant."""
    if finding is None:
        return Row("", (reason,))
    row = finding_row(finding, shown)
    return (
        row if _MEANT in finding.message or finding.rule == "refused-flag" else replace(row, texts=(reason,), advice="")
    )


def place_of(finding: Finding, shown: Shown) -> str:
    """``train.py:12``"""
    place = finding.place
    line = place.document.position(place.span.start).line
    return f"{clean(shown(place.document.path))}:{line}{in_cell(place)}"


def row_lines(rows: Sequence[Row], view: View, indent: int, most: int = LINES) -> list[Line]:
    """The rows with their texts below each other, each in ``most`` lines; behind a long place a text begins where it
    may."""
    column = max((cells(row.where) for row in rows if cells(row.where) <= _WIDEST * view.width), default=0)
    start = indent + (column + 2 if column else 0)
    bodies = [_body(row, view.width, indent if cells(row.where) > column else start, indent, most) for row in rows]
    ends = [
        _end(body)
        for row, body in zip(rows, bodies, strict=True)
        if len(body) == 1 and _has_room(row, body, view.width)
    ]
    lines: list[Line] = []
    for row, body in zip(rows, bodies, strict=True):
        lines += _with_tail(row, body, max(ends, default=0), view.width)
    return lines


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


def _body(row: Row, width: int, start: int, indent: int, allowed: int) -> list[Line]:
    """The row's place and the first of its texts that takes no more than its lines."""
    lead: Line = [(" " * indent, ""), (row.where, "path")] if row.where else [(" " * indent, "")]
    pad = start - indent - cells(row.where)
    lead += [(" " * pad, "")] if pad > 0 else [("  ", "")] if row.where else []
    lead += [(row.label, row.style)] if row.label else []
    behind = start if start > indent or not row.where else indent + _HANGING
    lines: list[Line] = []
    for text, most in _choices(row, allowed, allowed + (width < _WIDE)):
        lines = wrapped(lead, text, width, behind)
        if not row.tail or len(lines) + (not _has_room(row, lines, width)) <= most:
            break
    return lines


def _choices(row: Row, least: int, most_of_all: int) -> Iterator[tuple[str, int]]:
    """What a row may say and in how many lines, the whole of it first; ``most_of_all`` to say what to do."""
    advice = f"; {row.advice}" if row.advice else ""
    for most, ending in ((least, advice), (most_of_all, advice), (least, "")) if advice else ((least, ""),):
        yield from ((f"{text}{ending}", most) for text in row.texts)
        words = row.texts[-1].split()
        for count in range(len(words) - 1, _WORDS if ending else 0, -1):
            yield f"{' '.join(words[:count])} …{ending}", most


def _end(body: Sequence[Line]) -> int:
    return cells(plain(body[-1:]).rstrip("\n"))


def _has_room(row: Row, body: Sequence[Line], width: int) -> bool:
    """Whether the tail goes behind the last line."""
    return _end(body) + _GAP + cells(row.tail) <= width


def _with_tail(row: Row, body: list[Line], aligned: int, width: int) -> list[Line]:
    """The tail behind the last line, below those of the rows that have one line; in a line of its own where there is
    no room."""
    if not row.tail:
        return body
    if not _has_room(row, body, width):
        return [*body, [(" " * (_HANGING + 2), ""), (row.tail, "dim")]]
    fits = len(body) == 1 and aligned + _GAP + cells(row.tail) <= width
    pad = max(aligned - _end(body), 0) if fits else 0
    return [*body[:-1], [*body[-1], (" " * (pad + _GAP), ""), (row.tail, "dim")]]
