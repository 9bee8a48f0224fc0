"""Lines of a text, by offset. Only ``\\r\\n``, ``\\r`` and ``\\n`` break a line."""

from __future__ import annotations

from collections.abc import Iterable

from lintfit.documents.patterns import lazy_pattern

_BREAK = lazy_pattern(r"\r\n|\r|\n")
_BLANKS = lazy_pattern(r"[ \t]*")
_REST = lazy_pattern(r"[ \t]*(?:(?:#|//)[^\r\n]*|/\*(?:(?!\*/)[^\r\n])*\*/[ \t]*)?(?=[\r\n]|\Z)")

_REACH = 128
"""Characters in which most lines begin; where one does not, as many times more are looked at."""


def line_start(text: str, offset: int) -> int:
    """Where the line that ``offset`` stands on begins."""
    reach = _REACH
    while True:  # of the kind of break that a file does not have, the whole text would be searched for every line
        low = max(0, offset - reach)
        found = max(text.rfind("\n", low, offset), text.rfind("\r", low, offset))
        if found >= 0 or not low:
            return found + 1
        reach *= _REACH


def line_end(text: str, offset: int, breaks: bool = True) -> int:
    """Where the line that ``offset`` stands on ends: behind its line break, or before it."""
    found = _BREAK.search(text, offset)
    if found is None:
        return len(text)
    return found.end() if breaks else found.start()


def indentation(text: str, offset: int) -> str:
    """The blanks at the start of the line that ``offset`` stands on."""
    start = line_start(text, offset)
    return text[start : _blank_end(text, start)]


def starts_line(text: str, offset: int) -> bool:
    """Whether only blanks stand before ``offset`` on its line."""
    return not text[line_start(text, offset) : offset].strip(" \t")


def rest_is_blank(text: str, offset: int) -> bool:
    """Whether behind ``offset`` the line holds nothing but blanks and a comment (``#``, ``//`` or ``/* */``)."""
    return _REST.match(text, offset) is not None


def without_second_blank(text: str, start: int, end: int) -> int:
    """Where whole lines from ``start`` to ``end`` that go away end: of a blank line above and one below, the one below
    goes along, also where there is nothing above at all."""
    last = start - (2 if text.endswith("\r\n", 0, start) else 1)
    above = text[line_start(text, last) : last] if start else ""
    below = _BREAK.match(text, _blank_end(text, end))
    return below.end() if below is not None and not above.strip() else end


def _blank_end(text: str, offset: int) -> int:
    match = _BLANKS.match(text, offset)
    return match.end() if match else offset


def step_of(text: str, pairs: Iterable[tuple[int, int]]) -> str:
    """What one level of nesting is indented by, told by the first of these places of an outer and an inner item.

    Two blanks where none of the inner ones begins a line that is indented more.
    """
    for outer, inner in pairs:
        above, below = indentation(text, outer), indentation(text, inner)
        if starts_line(text, inner) and below.startswith(above) and below != above:
            return below[len(above) :]
    return "  "
