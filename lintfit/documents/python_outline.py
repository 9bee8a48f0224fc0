"""Where the bodies of a module's functions stand, told by CPython's parser, so that libcst need not read them all.

libcst takes ten times as long as CPython's own parser, and most functions of the modules that a script imports from are
never looked at. A body is left out of what libcst is given only where its lines give the same nodes when they are read
alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from lintfit.documents.lines import line_end
from lintfit.documents.model import Document
from lintfit.frozen import frozen

LEAST = 200
"""Characters of a body that is worth leaving out: a shorter one is read as fast as it is cut out."""
_BLANK_OR_COMMENT = re.compile(r"[ \t\f]*(?:#|\r|\n|\Z)")
_INDENT = re.compile(r"[ \t]+")
_PARTS = ("body", "handlers", "cases", "orelse", "finalbody")
"""Fields of CPython's statements that hold statements, in the order of the text."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Body:
    """The lines of a function's body, with the comments above and behind it that libcst counts to it."""

    start: int
    end: int
    """Behind its last line break, or the end of the text."""
    first: int
    """Where the first statement begins, without its decorators."""
    last: int
    """Where the last statement ends."""
    indent: str


@frozen
class Outline:
    """The statements of a module."""

    first_lines: tuple[int, ...] = ()
    """The lines on which they begin, with their decorators."""
    bodies: tuple[Body | None, ...] = ()
    """Of the functions that stand in no other function, in order; None where a body is not to be left out."""


def outline(document: Document, statements: Sequence[ast.stmt]) -> Outline:
    """The outline of a text that CPython has parsed."""
    return Outline(
        tuple(map(_first_line, statements)), tuple(_body(document, function) for function in _functions(statements))
    )


def without_bodies(text: str, bodies: Sequence[Body | None]) -> str:
    """The text with ``pass`` in the place of the bodies."""
    parts: list[str] = []
    position = 0
    for body in bodies:
        if body is not None:
            parts += (text[position : body.start], body.indent, "pass", _line_break(text, body.end))
            position = body.end
    return "".join((*parts, text[position:]))


def _functions(statements: Sequence[ast.AST]) -> Iterator[_Function]:
    # A long chain of elif is a deep nest: no recursion.
    ahead = [*reversed(statements)]
    while ahead:
        statement = ahead.pop()
        if isinstance(statement, _Function):
            yield statement
            continue
        for name in reversed(_PARTS):
            ahead.extend(reversed(getattr(statement, name, ())))


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", ())
    return decorators[0].lineno if decorators else statement.lineno


def _body(document: Document, function: _Function) -> Body | None:
    text, statements = document.text, function.body
    line = _first_line(statements[0])
    first = _offset(document, statements[0].lineno, statements[0].col_offset)
    last = _offset(document, statements[-1].end_lineno, statements[-1].end_col_offset)
    if last - first < LEAST:
        return None
    indent = _INDENT.match(text, document.offset(line, 1))
    if indent is None or (indent.end() != first and text[indent.end()] != "@"):
        return None  # the first statement stands behind the colon
    while _BLANK_OR_COMMENT.match(text, document.offset(line - 1, 1)):
        line -= 1
    start, code_end = document.offset(line, 1), line_end(text, last)
    end = _end(text, code_end, indent.group())
    if end is None or _is_continued(text, start) or _is_continued(text, code_end):
        return None
    return Body(start, end, first, last, indent.group())


def _offset(document: Document, line: int | None, column: int | None) -> int:
    """The offset of a place as CPython gives it, in bytes of the line's UTF-8."""
    assert line is not None and column is not None
    start = document.offset(line, 1)
    prefix = document.text[start : start + column]
    return start + (column if prefix.isascii() else len(prefix.encode()[:column].decode()))


def _line_break(text: str, end: int) -> str:
    """The line break of the line that ends at ``end``."""
    found = text[end - 2 : end]
    return found[len(found.rstrip("\r\n")) :]


def _is_continued(text: str, end: int) -> bool:
    return text.endswith("\\" + _line_break(text, end), 0, end)


def _end(text: str, start: int, indent: str) -> int | None:
    """Where a body ends whose last statement's line ends at ``start``.

    libcst counts to a block what stands behind it up to the last line that is indented like it. None where that reaches
    the end of the text, which libcst makes part of the module as well.
    """
    end = position = start
    while position < len(text):
        if not _BLANK_OR_COMMENT.match(text, position):
            return end
        following = line_end(text, position)
        if text.startswith(indent, position):
            end = following
        position = following
    return end if end == start else None
