"""How a change of a YAML document is written: the splices behind :mod:`lintfit.documents.data_edits`."""

from __future__ import annotations

import math
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
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.widths import has_no_room
from lintfit.documents.yaml11 import is_plain_string

_PLAIN = lazy_pattern(r"[A-Za-z0-9_./][A-Za-z0-9_./+@=-]*(?: [A-Za-z0-9_./+@=-]+)*")
_COLON = lazy_pattern(r"[ \t\r\n]*:")
_COMMA = lazy_pattern(r"(?:[ \t\r\n]|(?<=[ \t\r\n])#[^\r\n]*)*(,)")


def replaced(document: DataDocument, steps: list[Node], value: Any) -> tuple[Edit, ...]:
    """Edits that put ``value`` in the place of the last node of ``steps``."""
    node, text = steps[-1], document.text
    if len(steps) == 1:
        return _new_root(document, node, value)
    flow = any(_flow(document, step) for step in steps[:-1])
    block_before = node.shape != "scalar" and not _flow(document, node) and not text.startswith("*", node.span.start)
    nested = isinstance(value, (dict, list)) and bool(value) and not flow
    if not nested and not block_before:
        new = _inline(value, like=document.slice(node.span))
        needs_blank = node.span.start == node.span.end and not text[node.span.start - 1 : node.span.start].isspace()
        return (Edit(node.span, (" " if needs_blank else "") + new),)
    after = _indicator_end(document, steps)
    if not nested:
        return _collapsed(document, after, node, _inline(value))
    indent = _item_column(document, steps) + _unit(document)
    return _unfolded(document, after, node, _block(document, value, indent))


def _new_root(document: DataDocument, node: Node, value: Any) -> tuple[Edit, ...]:
    newline = document.file.newline
    new = _block(document, value, "") if isinstance(value, (dict, list)) and value else _inline(value)
    if node.span.start == node.span.end:
        # Nothing but comments: the value goes below them.
        text = document.text
        lead = "" if not text or text.endswith(("\n", "\r")) else newline
        return (Edit(Span(len(text), len(text)), lead + new + newline),)
    return (Edit(node.span, new),)


def _collapsed(document: DataDocument, after: int, node: Node, new: str) -> tuple[Edit, ...]:
    """A block collection becomes a scalar on its key's line; a comment on that line stays."""
    line = line_end(document.text, after, breaks=False)
    if line < node.span.start:
        return (Edit.insert(after, " " + new), Edit(Span(line, node.span.end), ""))
    return (Edit(node.span, new),)


def _unfolded(document: DataDocument, after: int, node: Node, block: str) -> tuple[Edit, ...]:
    """A value becomes a block collection on the lines below its key; a comment on the key's line stays."""
    text, newline = document.text, document.file.newline
    start = line_start(text, node.span.start)
    if starts_line(text, node.span.start) and node.span.start > after:
        return (Edit(Span(start, node.span.end), block),)
    if rest_is_blank(text, node.span.end):
        end = line_end(text, node.span.end, breaks=False)
        blanks = max(after, node.span.start - (1 if text[node.span.start - 1 : node.span.start] == " " else 0))
        if node.span.end == end:
            return (Edit(Span(min(blanks, node.span.start), end), newline + block),)
        return (Edit(Span(min(blanks, node.span.start), node.span.end), ""), Edit.insert(end, newline + block))
    return (Edit(Span(after, node.span.end), newline + block),)


def added(document: DataDocument, steps: list[Node], step: str | int, value: Any) -> tuple[Edit, ...]:
    """Edits that add an entry (or element) to the last node of ``steps``: behind its last one, or in its place among
    keys that are sorted."""
    node, text = steps[-1], document.text
    if any(_flow(document, item) for item in steps):
        return _added_in_flow(document, node, step, value)
    first = _own(node)[0]
    below = _next_in_order(document, node, step) if isinstance(step, str) else None
    if isinstance(step, str) and below is not None:
        column = indentation(text, below)
        return (
            Edit.insert(
                line_start(text, below), column + _entry(document, step, value, column) + document.file.newline
            ),
        )
    start = first.start if node.entries else node.span.start
    column = " " * (start - line_start(text, start))
    if isinstance(step, str):
        lines = column + _entry(document, step, value, column)
    else:
        lines = _block(document, [value], column)
    end = line_end(text, max(node.span.end, first.end))
    newline = document.file.newline
    if text[:end].endswith(("\n", "\r")):
        return (Edit.insert(end, lines + newline),)
    return (Edit.insert(end, newline + lines),)


_SORTED = 5
"""Keys in alphabetical order, one below the other, that are taken to be sorted."""
_SURELY_SORTED = 10
"""So many are in that order by no chance, whatever keys are related."""


def sorted_around(document: DataDocument, key: str) -> frozenset[str]:
    """The keys among which a new one of the document has its place, where these are surely sorted; else none."""
    found = _in_order(document, document.root, key, _SURELY_SORTED) if document.root is not None else None
    return frozenset(entry.key for entry in found[1]) if found is not None else frozenset()


def _next_in_order(document: DataDocument, node: Node, key: str) -> int | None:
    """Where the key starts that a new one stands above; None where it does not belong between two sorted ones."""
    found = _in_order(document, node, key, _SORTED)
    return found[0] if found is not None else None


def _in_order(document: DataDocument, node: Node, key: str, at_least: int) -> tuple[int, list[Entry]] | None:
    """Where the key starts that a new one stands above, and the sorted keys, so many at least; None where it does not
    belong between two of them, or a comment stands there."""
    own = [entry for entry in node.entries if node.span.start <= entry.key_span.start < node.span.end]
    begin = 0
    for index in range(1, len(own) + 1):
        if index < len(own) and own[index - 1].key < own[index].key:
            continue
        run, begin = own[begin:index], index
        place = next((at for at, entry in enumerate(run) if entry.key > key), 0)
        start = run[place].key_span.start if place and len(run) >= at_least else None
        if start is not None and not _is_set_off(document.text, start):
            return start, run
    return None


def _is_set_off(text: str, start: int) -> bool:
    """Whether a comment or a blank line stands above a key, or something else on its line."""
    begin = line_start(text, start)
    above = text[line_start(text, max(begin - 1, 0)) : begin].strip()
    return not starts_line(text, start) or not above or above.startswith("#")


def _added_in_flow(document: DataDocument, node: Node, step: str | int, value: Any) -> tuple[Edit, ...]:
    text = document.text
    new = _inline(value)
    if isinstance(step, str):
        new = f"{key_text(step)}: {new}"
    items = _own(node)
    if not items:
        return (Edit.insert(node.span.start + 1, new),)
    last = items[-1]
    comma = _COMMA.match(text, last.end, node.span.end)
    if starts_line(text, last.start):
        line = document.file.newline + indentation(text, last.start) + new
        return added_below(text, last.end, comma.end() if comma else None, line)
    if has_no_room(text, last.end, len(new) + 2) and rest_is_blank(text, node.span.end):
        new = f",{document.file.newline}{_flow_indent(document, node, items)}{new}"
        return (Edit.insert(last.end, new),)
    return (Edit.insert(last.end, f", {new}"),)


def _flow_indent(document: DataDocument, node: Node, items: list[Span]) -> str:
    """What a further line of a flow collection is indented by: as its other lines are, else one level."""
    text = document.text
    leading = next((item for item in reversed(items) if starts_line(text, item.start)), None)
    if leading is not None:
        return indentation(text, leading.start)
    return indentation(text, node.span.start) + _unit(document)


def removed(document: DataDocument, steps: list[Node]) -> tuple[Edit, ...]:
    """Edits that take the last node of ``steps`` out of the one before it, and all entries of its key."""
    node, parent = steps[-1], steps[-2]
    entries = [entry for entry in parent.entries if entry.span in _own(parent)]
    if parent.shape == "mapping":
        key = next(entry.key for entry in parent.entries if entry.value is node)
        gone = [entry.span for entry in entries if entry.key == key]
    else:
        gone = [node.span]
    if any(_flow(document, step) for step in steps[:-1]):
        return tuple(_removed_in_flow(document, parent, span) for span in gone)
    if len(gone) == len(_own(parent)) >= len(parent.entries):
        # A mapping without entries is no mapping any more: it must say that it is empty.
        empty = "{}" if parent.shape == "mapping" else "[]"
        if len(steps) == 2:
            return (Edit(parent.span, empty),)
        return _collapsed(document, _indicator_end(document, steps[:-1]), parent, empty)
    return tuple(_removed_lines(document, parent, span) for span in gone)


def _removed_lines(document: DataDocument, parent: Node, span: Span) -> Edit:
    text = document.text
    if parent.shape == "sequence":
        dash = text.rfind("-", 0, span.start + (span.start == span.end))
        start = dash if dash >= 0 else span.start
    else:
        start = span.start
    end = line_end(text, span.end)
    if starts_line(text, start):
        first = line_start(text, start)
        return Edit(Span(first, without_second_blank(text, first, end)), "")
    # The first entry behind a dash: the next one moves up to its place.
    items = _own(parent)
    index = items.index(span)
    following = items[index + 1].start if index + 1 < len(items) else span.end
    if parent.shape == "sequence" and index + 1 < len(items):
        following = text.rfind("-", 0, following)
    return Edit(Span(start, following), "")


def _removed_in_flow(document: DataDocument, parent: Node, span: Span) -> Edit:
    text, items = document.text, _own(parent)
    index = items.index(span)
    comma = _COMMA.match(text, span.end, parent.span.end)
    after = comma.end() if comma else span.end
    if starts_line(text, span.start) and rest_is_blank(text, after):
        return Edit(Span(line_start(text, span.start), line_end(text, after)), "")
    if index + 1 < len(items):
        following = items[index + 1].start
        return Edit(Span(span.start, following if "\n" not in text[after:following] else after), "")
    if index and "#" not in text[items[index - 1].end : span.start]:
        return Edit(Span(items[index - 1].end, span.end), "")
    return Edit(Span(span.start, after), "")


def key_text(key: str, like: str = "") -> str:
    """A key, quoted where it must be or where the key ``like`` is in the source."""
    return _string(key, like)


def truth(value: bool, document: DataDocument) -> str:
    """A truth value as the file spells most of its own: ``True`` or ``true``."""
    capital = len(_CAPITAL.findall(document.text)) > len(_SMALL.findall(document.text))
    return str(value) if capital else str(value).lower()


_CAPITAL = lazy_pattern(r":[ \t]+(?:True|False)\b")
_SMALL = lazy_pattern(r":[ \t]+(?:true|false)\b")


def _entry(document: DataDocument, key: str, value: Any, indent: str) -> str:
    name = key_text(key)
    if isinstance(value, bool):
        return f"{name}: {truth(value, document)}"
    if isinstance(value, (dict, list)) and value:
        return f"{name}:{document.file.newline}{_block(document, value, indent + _unit(document))}"
    return f"{name}: {_inline(value)}"


def _block(document: DataDocument, value: dict[str, Any] | list[Any], indent: str) -> str:
    """A collection in block style, every line indented; no line break at its end."""
    newline = document.file.newline
    if isinstance(value, dict):
        return newline.join(indent + _entry(document, key, item, indent) for key, item in value.items())
    lines = []
    for item in value:
        if isinstance(item, (dict, list)) and item:
            lines.append(f"{indent}- {_block(document, item, indent + '  ')[len(indent) + 2 :]}")
        else:
            lines.append(f"{indent}- {_inline(item)}")
    return newline.join(lines)


def _inline(value: Any, like: str = "") -> str:
    if isinstance(value, dict):
        inner = (f"{key_text(key)}: {_inline(item)}" for key, item in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(item) for item in value) + "]"
    if isinstance(value, str):
        return _string(value, like)
    if isinstance(value, bool) and like[:1] in ("T", "F"):
        return str(value)
    return _number(value)


def _number(value: float | bool | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    # YAML 1.1 wants a dot before the exponent: 1e-05 would be a string.
    mantissa, mark, exponent = repr(value).partition("e")
    return mantissa + (".0" if mark and "." not in mantissa else "") + mark + exponent


def _string(value: str, like: str) -> str:
    quote = like[:1] if like[:1] in ("'", '"') else ""
    if not quote and _PLAIN.fullmatch(value) and is_plain_string(value):
        return value
    if not value.isprintable() or quote == '"':
        return '"' + "".join(map(_escaped, value)) + '"'
    return "'" + value.replace("'", "''") + "'"


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _own(node: Node) -> list[Span]:
    if node.shape == "sequence":
        return [element.span for element in node.elements]
    return [entry.span for entry in node.entries if node.span.start <= entry.key_span.start < node.span.end]


def _flow(document: DataDocument, node: Node) -> bool:
    return node.shape != "scalar" and document.text[node.span.start : node.span.start + 1] in ("{", "[")


def _holder(parent: Node, node: Node) -> Entry | None:
    return next((entry for entry in reversed(parent.entries) if entry.value is node), None)


def _indicator_end(document: DataDocument, steps: list[Node]) -> int:
    """Behind the ``:`` or ``-`` that introduces the last node of ``steps``."""
    node, text = steps[-1], document.text
    entry = _holder(steps[-2], node)
    if entry is not None:
        colon = _COLON.match(text, entry.key_span.end)
        return colon.end() if colon else entry.key_span.end
    return text.rfind("-", 0, node.span.start + (node.span.start == node.span.end)) + 1


def _item_column(document: DataDocument, steps: list[Node]) -> str:
    """The blanks up to the column of the entry or dash that holds the last node of ``steps``."""
    entry = _holder(steps[-2], steps[-1])
    start = entry.key_span.start if entry is not None else _indicator_end(document, steps) - 1
    return " " * (start - line_start(document.text, start))


def _unit(document: DataDocument) -> str:
    """What one level of nesting is indented by in this file."""
    nodes = document.root.walk() if document.root is not None else ()
    entries = (entry for _, node in nodes for entry in node.entries if entry.value.entries)
    return step_of(document.text, ((entry.key_span.start, entry.value.span.start) for entry in entries))
