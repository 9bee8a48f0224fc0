"""Notebooks (``.ipynb``, nbformat 4): their code cells, and where each character of them stands in the JSON.

A notebook is read as two texts: its code cells joined in order as one Python script
(:mod:`lintfit.documents.notebook_code`), and its ``!`` and ``%`` lines as one shell script
(:mod:`lintfit.documents.notebook_shell`). Both are embedded (:mod:`lintfit.documents.embedded`): places and edits are
those of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lintfit.documents.embedded import Embedder, Style
from lintfit.documents.limits import MAX_PARTS, TOO_MANY_PARTS, json_parts
from lintfit.documents.model import Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN = lazy_pattern(rf"{_STRING}|[{{}}\[\]:,]|[^\s{{}}\[\]:,\"]+", re.DOTALL)
_ESCAPE = lazy_pattern(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)")


@frozen
class Piece:
    """Decoded characters of a cell and the characters of the file that they are; equally many where nothing is
    escaped."""

    text: str
    span: Span


@frozen(eq=False)
class Cell:
    """A code cell: which it is of all cells (1-based), its source, and the pieces that it is made of, in order."""

    number: int
    source: str
    pieces: tuple[Piece, ...]
    style: Style

    def add_to(self, embedder: Embedder, region: int, text: str, start: int = 0, end: int | None = None) -> None:
        """Add the characters ``[start, end)`` of the source, as ``text`` has them, which is as long as the source."""
        at = 0
        end = len(self.source) if end is None else end
        for piece in self.pieces:
            first, last = max(start, at), min(end, at + len(piece.text))
            if first < last:
                span, plain = piece.span, len(piece.text) == piece.span.end - piece.span.start
                whole = first == at and last == at + len(piece.text)
                outer = span if whole or not plain else Span(span.start + first - at, span.start + last - at)
                embedder.add(text[first:last], outer.start, outer.end, region)
            at += len(piece.text)

    def outer(self, start: int, end: int) -> Span:
        """The characters of the file from one offset of the source to another."""
        spans = []
        at = 0
        for piece in self.pieces:
            first, last = max(start, at), min(end, at + len(piece.text))
            if first < last:
                plain = len(piece.text) == piece.span.end - piece.span.start
                spans.append(Span(piece.span.start + first - at, piece.span.start + last - at) if plain else piece.span)
            at += len(piece.text)
        return Span(spans[0].start, spans[-1].end) if spans else Span(0, 0)


@frozen(eq=False)
class Notebook:
    """A notebook's code cells and its metadata."""

    text: str
    cells: tuple[Cell, ...]
    metadata: Mapping[str, Any]


class NotNotebook(ValueError):
    """Text that is no notebook of nbformat 4: one line says why."""


@lru_cache(maxsize=64)
def read_notebook(text: str) -> Notebook:
    """The code cells of a notebook. Raises :class:`NotNotebook` for anything else."""
    if json_parts(text) > MAX_PARTS:
        raise NotNotebook(TOO_MANY_PARTS)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise NotNotebook(f"is not a notebook: line {error.lineno} is no JSON: {error.msg.lower()}") from None
    except (ValueError, RecursionError):
        raise NotNotebook("is not a notebook: its JSON is nested too deeply or holds a number too long") from None
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        older = isinstance(content, dict) and "worksheets" in content
        raise NotNotebook(
            "is a notebook of nbformat 3, which is not read: nbformat.convert makes it one of 4"
            if older
            else "is not a notebook: it has no list of cells"
        )
    if len(content["cells"]) > MOST_CELLS or sum(map(_lines, content["cells"])) > MAX_LINES:
        raise NotNotebook(f"has more than {MOST_CELLS} cells, or {MAX_LINES} lines in them: no notebook that trains")
    metadata = content.get("metadata")
    del content  # the cells are read once more, piece by piece
    return Notebook(text, tuple(_cells(text)), metadata if isinstance(metadata, dict) else {})


MOST_CELLS = 2000
"""Cells of a notebook that is still read; long ones have some hundred."""
MAX_LINES = 20_000


def _lines(cell: object) -> int:
    """How many lines a cell's source has."""
    source = cell.get("source") if isinstance(cell, dict) else None
    parts = source if isinstance(source, list) else [source]
    return sum(1 + part.count("\n") for part in parts if isinstance(part, str))


class _Tokens:
    """Walks through JSON that is known to be valid, value by value."""

    def __init__(self, text: str) -> None:
        self._found = _TOKEN.finditer(text)
        self._decode = json.JSONDecoder().raw_decode
        self.span = (0, 0)
        self.token = ""
        self.text = text

    def next(self) -> str:
        found = next(self._found)
        self.span, self.token = found.span(), found.group()
        return self.token

    def skip(self) -> None:
        """Go on to the last token of the value that begins at this token."""
        if self.token not in ("{", "["):
            return
        try:
            end = self._decode(self.text, self.span[0])[1]
        except RecursionError:  # deeper in the stack than where all of it was read
            self._skip_by_tokens()
            return
        # The outputs of a notebook are most of it: its decoder is through them before their tokens are told apart.
        self.span, self.token = (end - 1, end), self.text[end - 1]
        self._found = _TOKEN.finditer(self.text, end)

    def _skip_by_tokens(self) -> None:
        depth = 0
        while True:
            depth += (self.token in ("{", "[")) - (self.token in ("}", "]"))
            if depth == 0:
                return
            self.next()

    def entries(self) -> Iterator[str]:
        """The keys of the object that begins here; each time at its value's first token, to be left at its last."""
        while True:
            token = self.next()
            if token == "}":
                return
            if token != ",":
                key = str(json.loads(token))
                self.next()
                self.next()
                yield key

    def items(self) -> Iterator[None]:
        """The items of the array that begins here, in the same way."""
        while True:
            token = self.next()
            if token == "]":
                return
            if token != ",":
                yield


def _cells(text: str) -> Sequence[Cell]:
    """The code cells; of several lists of cells the last, as JSON's readers have it."""
    tokens = _Tokens(text)
    tokens.next()
    found: list[Cell] = []
    escaped = text.isascii() and "\\u" in text
    for key in tokens.entries():
        if key != "cells":
            tokens.skip()
            continue
        found, items = [], tokens.items() if tokens.token == "[" else ()
        if not items:
            tokens.skip()
        for number, _ in enumerate(items, 1):
            cell = _cell(tokens, number, escaped)
            if cell is not None:
                found.append(cell)
    return found


def _cell(tokens: _Tokens, number: int, escaped: bool) -> Cell | None:
    kind, brackets = "", False
    strings: list[tuple[int, int, int]] = []
    if tokens.token != "{":
        tokens.skip()
        return None
    for key in tokens.entries():
        if key == "cell_type" and tokens.token[0] == '"':
            kind = str(json.loads(tokens.token))
        elif key == "source" and tokens.token == "[":
            strings, brackets = [], True
            start = tokens.span[1]
            for _ in tokens.items():
                if tokens.token[0] == '"':
                    strings.append((start, *tokens.span))
                    start = tokens.span[1]
                else:
                    tokens.skip()
        elif key == "source" and tokens.token[0] == '"':
            strings, brackets = [(tokens.span[0], *tokens.span)], False
        else:
            tokens.skip()
    if kind != "code":
        return None
    return _read_cell(tokens.text, number, strings, brackets, escaped)


def _read_cell(text: str, number: int, strings: list[tuple[int, int, int]], brackets: bool, escaped: bool) -> Cell:
    """A cell from the places of its strings, each with where the one before it ended."""
    pieces: list[Piece] = []
    for index, (_, start, end) in enumerate(strings):
        pieces += _decoded(text, start + 1, end - 1)
        if index + 1 < len(strings) and pieces and pieces[-1].text == "\n":
            # The line break and the way to the next line's first character are one.
            pieces[-1] = Piece("\n", Span(pieces[-1].span.start, strings[index + 1][1] + 1))
    between = _between(text, strings) if brackets else None
    return Cell(number, "".join(piece.text for piece in pieces), tuple(pieces), _style(between, escaped))


def _between(text: str, strings: list[tuple[int, int, int]]) -> str:
    """What stands between the strings of two lines."""
    if len(strings) > 1:
        return text[strings[1][0] : strings[1][1]]
    blanks = text[strings[0][0] : strings[0][1]] if strings else ""
    return f",{blanks or ' '}" if not blanks.strip() else ", "


def _style(between: str | None, escaped: bool) -> Style:
    def write(line: str) -> str:
        return json.dumps(line, ensure_ascii=escaped)[1:-1]

    return Style(write, "\\n") if between is None else Style(write, f'\\n"{between}"', "\\n")


def _decoded(text: str, start: int, end: int) -> Iterator[Piece]:
    at = start
    for escape in _ESCAPE.finditer(text, start, end):
        if escape.start() > at:
            yield Piece(text[at : escape.start()], Span(at, escape.start()))
        at = escape.end()
        yield Piece(str(json.loads(f'"{escape.group()}"')), Span(*escape.span()))
    if end > at:
        yield Piece(text[at:end], Span(at, end))
