"""How items are added between brackets of Python: on the line while it has room, else as black would break it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from lintfit.documents.lines import indentation, line_end, line_start, starts_line
from lintfit.documents.model import Edit, Span
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.widths import python_width


class Bracketed(NamedTuple):
    """What stands ``inside`` two brackets: the ``items``, at least one, and what is between them."""

    inside: Span
    items: Sequence[Span]


def width(document: PythonDocument) -> int:
    """Columns that a line of this file may have."""
    return python_width(document.path, document.text)


def step(document: PythonDocument) -> str:
    """What one level is indented by in this file."""
    return document.module.default_indent if document.module is not None else "    "


def added(
    document: PythonDocument, around: Bracketed, behind: int, texts: Sequence[str], outer: Bracketed | None = None
) -> tuple[Edit, ...]:
    """Add items behind the first ``behind`` items, where these stand on one line or fill several.

    Where the line has no room for them, items that share one line are parted: all on the next line where that has
    room and no comma stands at the end, else one a line with a comma behind each. In lines that are filled, the new
    items begin the next. A line that is too long already gets longer.
    """
    text, items = document.text, around.items
    place = items[behind - 1].end if behind else items[0].start
    here = Edit.insert(place, "".join(f", {each}" if behind else f"{each}, " for each in texts))
    now = line_end(text, place, breaks=False) - line_start(text, place)
    if now > width(document) or now + len(here.text) <= width(document) or not _is_simple(document, around):
        return (here,)
    if _one_line(text, around):
        if outer is not None and _one_line(text, outer) and _is_simple(document, outer):
            return _both_parted(document, outer, around, behind, texts, here)
        return tuple(_parted(document, around, behind, texts))
    leading = [item.start for item in items if starts_line(text, item.start)]
    if not leading or not behind:
        return (here,)
    line = f",{document.file.newline}{indentation(text, leading[-1])}"
    return (Edit.insert(place, "".join(line + each for each in texts)),)


def _both_parted(
    document: PythonDocument, outer: Bracketed, around: Bracketed, behind: int, texts: Sequence[str], here: Edit
) -> tuple[Edit, ...]:
    """The outer items on lines of their own; where that makes no room for the edit, the inner ones, too."""
    held = next(item for item in outer.items if item.start <= here.span.start <= item.end)
    base = indentation(document.text, held.start)
    base += "" if starts_line(document.text, held.start) else step(document)
    if len(base) + held.end - held.start + len(here.text) + 1 <= width(document):
        return (*_parted(document, outer, 0, (), more=len(here.text)), here)
    inner = _parted(document, around, behind, texts, base=base)
    return (*_parted(document, outer, 0, (), more=width(document)), *inner)


def fitted(document: PythonDocument, text: str, indent: str) -> str:
    """An argument for a line of its own: a call that is too long for it is broken between its brackets."""
    if len(indent) + len(text) + 1 <= width(document):
        return text
    (argument,) = _call(f"_({text})").args
    value = argument.value
    if not isinstance(value, cst.Call) or not value.args:
        return text
    code = cst.Module([]).code_for_node
    name = f"{argument.keyword.value}=" if argument.keyword is not None else ""
    inner, newline = indent + step(document), document.file.newline
    items = [code(item.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for item in value.args]
    lines = [", ".join(items)]
    if len(inner) + len(lines[0]) > width(document):
        lines = [f"{item}," for item in items]
    return newline.join([f"{name}{code(value.func)}(", *(inner + line for line in lines), f"{indent})"])


def _call(code: str) -> cst.Call:
    call = cst.parse_expression(code)
    assert isinstance(call, cst.Call)
    return call


def _parted(
    document: PythonDocument,
    around: Bracketed,
    behind: int,
    texts: Sequence[str],
    more: int = 0,
    base: str | None = None,
) -> Iterator[Edit]:
    """Items of one line on lines of their own, or together on the line below the opening bracket.

    ``more`` is how many characters are added within them, ``base`` the indentation of the line that the bracket will
    stand on (default: of the one that it stands on).
    """
    text, items, newline = document.text, around.items, document.file.newline
    outer = base if base is not None else indentation(text, around.inside.start - 1)
    rest = text[items[-1].end : around.inside.end]
    if starts_line(text, items[0].start):
        inner, alone, lead, end = indentation(text, items[0].start), True, "", rest.lstrip(" \t,")
    else:
        inner, end = outer + step(document), newline + outer
        together = len(", ".join([*(text[item.start : item.end] for item in items), *texts]))
        alone, lead = "," in rest or len(inner) + together + more > width(document), newline + inner
    separator = f",{newline}{inner}" if alone else ", "
    new = [fitted(document, each, inner) if alone else each for each in texts]
    before = "".join(each + separator for each in new) if not behind else ""
    first = around.inside.start if lead else items[0].start
    yield Edit(Span(first, items[0].start), lead + before)
    for number, (item, following) in enumerate(zip(items, [*items[1:], None], strict=True), 1):
        added_here = "".join(separator + each for each in new) if number == behind else ""
        if following is not None:
            yield Edit(Span(item.end, following.start), added_here + separator)
        else:
            yield Edit(Span(item.end, around.inside.end), f"{added_here}{',' if alone and end else ''}{end}")


def _is_simple(document: PythonDocument, around: Bracketed) -> bool:
    """Whether between the items there is nothing but commas and blanks: comments must stay where they are."""
    ends = [around.inside.start, *(item.end for item in around.items)]
    starts = [*(item.start for item in around.items), around.inside.end]
    gaps = [document.text[end:start] for end, start in zip(ends, starts, strict=True)]
    return all(not gap.strip(" \t\r\n,") for gap in gaps)


def _one_line(text: str, around: Bracketed) -> bool:
    """Whether all items stand on one line, with the brackets or between them."""
    first, last = around.items[0], around.items[-1]
    return line_end(text, first.start, breaks=False) >= last.end
