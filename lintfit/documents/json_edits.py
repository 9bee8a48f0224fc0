"""How a change of a JSON or HJSON document is written: the splices behind :mod:`lintfit.documents.data_edits`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from lintfit.documents.edits import added_below
from lintfit.documents.lines import (
    indentation,
    line_end,
    line_start,
    rest_is_blank,
    starts_line,
    step_of,
    without_second_blank,
)
from lintfit.documents.model import DataDocument, Edit, Entry, Node, Span
from lintfit.documents.widths import has_no_room, shown_width

_BARE_KEY = re.compile(r"[A-Za-z_]\w*")
_GAP = re.compile(r"(?:[ \t\r\n]|(?://|\#)[^\r\n]*|/\*.*?\*/)*", re.DOTALL)

_EXPONENT = re.compile(r":[ \t]*[0-9](?:\.[0-9]+)?e\+?[0-9]+\b")
_LARGE = 100_000
"""From here on people write numbers of elements with an exponent, where they do."""


def replaced(document: DataDocument, steps: list[Node], value: Any) -> tuple[Edit, ...]:
    """Edits that put ``value`` in the place of the last node of ``steps``."""
    node = steps[-1]
    if len(steps) == 1 and not document.text[node.span.start : node.span.end].startswith(("{", "[")) and node.entries:
        # The root has no braces, and a whole new value needs them.
        return (Edit(Span(0, len(document.text)), render(document, value, "", True) + document.file.newline),)
    if document.root is node and node.span.start == node.span.end:
        return (Edit(Span(len(document.text), len(document.text)), render(document, value, "", True)),)
    indent = indentation(document.text, node.span.start)
    spread = len(steps) < 2 or _spread(document, steps[-2])
    return (Edit(node.span, render(document, value, indent, spread)),)


def added(document: DataDocument, steps: list[Node], step: str | int, value: Any) -> tuple[Edit, ...]:
    """Edits that add an entry (or element) to the last node of ``steps``, behind its last one."""
    node, text = steps[-1], document.text
    items = _items(node)
    if not items:
        return _first(document, steps, step, value)
    last = items[-1]
    braced = text[node.span.start] in "{["
    spread = starts_line(text, last.start)
    indent = indentation(text, last.start)
    colon = _colon(document, node.entries[-1]) if node.entries else ": "
    new = render(document, value, indent, spread)
    if isinstance(step, str):
        new = key_text(step, document.slice(node.entries[-1].key_span)) + colon + new
    comma = _comma(text, last.end, node.span.end if braced else len(text))
    if not spread:
        gap = _between(text, items) or ", "
        more = len(gap) + len(new)
        if (
            braced
            and len(steps) > 1
            and _spread(document, steps[-2])  # one item of a collection whose items have lines of their own
            and has_no_room(text, last.end, more)
            and _simple(text, node, items)
        ):
            return tuple(_parted(document, node, items, new))
        return (
            Edit.insert(comma + 1 if comma is not None else last.end, gap.lstrip(",") + new if comma else gap + new),
        )
    line = document.file.newline + indent + new
    if comma is None and (_bare(document, last) or not braced):
        blank = rest_is_blank(text, last.end)
        return (Edit.insert(line_end(text, last.end, breaks=False) if blank else last.end, line),)
    return added_below(text, last.end, comma + 1 if comma is not None else None, line)


def _simple(text: str, node: Node, items: list[Span]) -> bool:
    """Whether between the items of a collection on one line there is nothing but commas and blanks."""
    ends = [node.span.start + 1, *(item.end for item in items)]
    starts = [*(item.start for item in items), node.span.end - 1]
    gaps = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    return all(not gap.strip(" \t,") for gap in gaps)


def _parted(document: DataDocument, node: Node, items: list[Span], new: str) -> Iterator[Edit]:
    """One item a line, the new one behind them, and the closing bracket below."""
    text, newline = document.text, document.file.newline
    indent = indentation(text, node.span.start)
    inner = newline + indent + _unit(document)
    yield Edit(Span(node.span.start + 1, items[0].start), inner)
    for item, following in pairwise(items):
        yield Edit(Span(item.end, following.start), "," + inner)
    last = "," if "," in text[items[-1].end : node.span.end - 1] else ""
    yield Edit(Span(items[-1].end, node.span.end - 1), f",{inner}{new}{last}{newline}{indent}")


def _first(document: DataDocument, steps: list[Node], step: str | int, value: Any) -> tuple[Edit, ...]:
    node, text = steps[-1], document.text
    if node.span.start == node.span.end:
        return replaced(document, steps, {step: value})
    inside = text[node.span.start + 1 : node.span.end - 1]
    if not inside.strip():
        return replaced(document, steps, {step: value} if isinstance(step, str) else [value])
    indent = indentation(text, node.span.start) + _unit(document)
    new = render(document, value, indent, True)
    if isinstance(step, str):
        new = f"{json.dumps(step, ensure_ascii=False)}: {new}"
    return (Edit.insert(node.span.start + 1, document.file.newline + indent + new),)


def removed(document: DataDocument, steps: list[Node]) -> tuple[Edit, ...]:
    """Edits that take the last node of ``steps`` out of the one before it, and all entries of its key."""
    node, parent = steps[-1], steps[-2]
    items = _items(parent)
    if parent.entries:
        key = next(entry.key for entry in parent.entries if entry.value is node)
        gone = [index for index, entry in enumerate(parent.entries) if entry.key == key]
    else:
        gone = [index for index, element in enumerate(parent.elements) if element is node]
    edits: list[Edit] = []
    for index in gone:
        edits.extend(_removed(document, parent, items, index, {*gone}))
    return tuple(edits)


def _removed(document: DataDocument, parent: Node, items: list[Span], index: int, gone: set[int]) -> list[Edit]:
    text, item = document.text, items[index]
    braced = text[parent.span.start] in "{["
    comma = _comma(text, item.end, parent.span.end if braced else len(text))
    after = item.end if comma is None else comma + 1
    kept = [other for other in range(index) if other not in gone]
    own_line = starts_line(text, item.start) and rest_is_blank(text, after)
    if kept and kept[-1] == index - 1 and not own_line and index + 1 == len(items):
        previous = items[index - 1].end
        if not text[previous : item.start].strip(", \t\r\n"):
            return [Edit(Span(previous, item.end), "")]
    edits: list[Edit] = []
    if comma is None and kept and gone.issuperset(range(index + 1, len(items))):
        # The comma before the last entry goes with it; what stands between them stays.
        before = _comma(text, items[kept[-1]].end, item.start)
        if before is not None:
            edits.append(Edit(Span(before, before + 1), ""))
    if own_line:
        start, end = line_start(text, item.start), line_end(text, after)
        return [*edits, Edit(Span(start, without_second_blank(text, start, end)), "")]
    blank = re.compile(r"[ \t]*").match(text, after) if index + 1 < len(items) and comma is not None else None
    return [*edits, Edit(Span(item.start, blank.end() if blank else after), "")]


def key_text(key: str, like: str) -> str:
    """A key, quoted as the key ``like`` is in the source."""
    if like.startswith("'") and "'" not in key and "\\" not in key and key.isprintable():
        return f"'{key}'"
    if not like.startswith(("'", '"')) and _BARE_KEY.fullmatch(key):
        return key
    return json.dumps(key, ensure_ascii=False)


def render(document: DataDocument, value: Any, indent: str, spread: bool) -> str:
    """A value as strict JSON; mappings one entry a line where ``spread``, the closing bracket at ``indent``."""
    if isinstance(value, int) and (short := _with_exponent(document, value)):
        return short
    if not spread or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, list) and not any(isinstance(item, (dict, list)) for item in value):
        line = json.dumps(value, ensure_ascii=False, allow_nan=False)
        if len(indent) + len(line) <= shown_width(document.text):
            return line
    newline, inner = document.file.newline, indent + _unit(document)
    if isinstance(value, list):
        lines = [inner + render(document, item, inner, True) for item in value]
        return f"[{newline}{f',{newline}'.join(lines)}{newline}{indent}]"
    lines = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {render(document, item, inner, True)}"
        for key, item in value.items()
    ]
    return f"{{{newline}{f',{newline}'.join(lines)}{newline}{indent}}}"


def _with_exponent(document: DataDocument, value: int) -> str:
    """A large round number as ``5e7``, where the file writes its own so; else nothing."""
    digits = str(value)
    mantissa = digits.rstrip("0")
    if (
        isinstance(value, bool)
        or not _LARGE <= value < 10**10
        or len(mantissa) != 1
        or not _EXPONENT.search(document.text)
    ):
        return ""
    return f"{mantissa}e{len(digits) - 1}"


def _items(node: Node) -> list[Span]:
    return [entry.span for entry in node.entries] or [element.span for element in node.elements]


def _comma(text: str, start: int, end: int) -> int | None:
    """Where the comma behind an item stands, with comments and blanks before it, or None."""
    gap = _GAP.match(text, start, end)
    at = gap.end() if gap else start
    return at if at < end and text[at] == "," else None


def _bare(document: DataDocument, item: Span) -> bool:
    """Whether an item ends in a bare word, behind which a comma would belong to the word."""
    root = document.root
    assert root is not None
    return any(
        node.span.end == item.end
        and isinstance(node.value, str)
        and not document.slice(node.span).startswith(("'", '"'))
        for _, node in root.walk()
        if node.shape == "scalar"
    )


def _colon(document: DataDocument, entry: Entry) -> str:
    gap = document.text[entry.key_span.end : entry.value.span.start]
    return gap if re.fullmatch(r"[ \t]*:[ \t]*", gap) else ": "


def _between(text: str, items: list[Span]) -> str | None:
    if len(items) < 2:
        return None
    gap = text[items[-2].end : items[-1].start]
    return gap if re.fullmatch(r",[ \t]*", gap) else None


def _spread(document: DataDocument, node: Node) -> bool:
    """Whether a collection's items stand on lines of their own."""
    items = _items(node)
    return not items or starts_line(document.text, items[-1].start)


def _unit(document: DataDocument) -> str:
    """What one level of nesting is indented by in this file."""
    nodes = document.root.walk() if document.root is not None else ()
    return step_of(document.text, ((node.span.start, node.entries[0].span.start) for _, node in nodes if node.entries))
