"""What a document is: the text of one file, its kind, and places in it.

All offsets are characters (code points) of the decoded text without a byte-order mark. Lines break at
``\\r\\n``, ``\\r`` and ``\\n`` only; lines and columns shown to people are 1-based.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.spans import Edit as Edit
from lintfit.documents.spans import Position as Position
from lintfit.documents.spans import Span as Span
from lintfit.frozen import frozen

if TYPE_CHECKING:
    from lintfit.documents.embedded import Embedding

_LINE_BREAK = lazy_pattern(r"\r\n|\r|\n")

SYNTAX_ERROR = "syntax-error"
"""The code of a problem that keeps a file from being read by whatever it is for."""
NOT_READ = "not-read"
"""The code of a problem that is no mistake in the file: it is too long, or no parser of lintfit's reads it."""

KeyPath = tuple[str | int, ...]
"""The way from the root of a data tree to a value: mapping keys and sequence indices."""

Scalar = str | int | float | bool | None


class Kind(StrEnum):
    """The syntax of a document, not what it is for."""

    JSON = "json"
    YAML = "yaml"
    PYTHON = "python"
    SHELL = "shell"


@frozen
class CellLine:
    """A line of a notebook's cell; both 1-based, the cell counted among all cells."""

    cell: int
    line: int


@frozen
class Problem:
    """Something wrong with the syntax of a document, found while reading it.

    ``code`` names the sort (``syntax-error``, ``duplicate-key``, ``not-strict-json``, …; :data:`NOT_READ` where it is
    lintfit that cannot read the text); ``detail`` completes the sentence and ``edits`` mend it where that is certain.
    """

    code: str
    detail: str
    span: Span
    edits: tuple[Edit, ...] = ()
    related: tuple[tuple[Span, str], ...] = ()


@frozen
class FileText:
    """How the bytes of a file became text, so that the text can become the same bytes again."""

    path: Path
    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    mode: int | None = None
    digest: int | None = None
    """Python's hash of the bytes as read: a file that has changed since is not written."""
    within: Embedding | None = None
    """Where ``text`` stands in the file, where it is only a part of what the file holds (a notebook's cells)."""

    @property
    def newline(self) -> str:
        """The first line break in the text; ``\\n`` where there is none."""
        found = _LINE_BREAK.search(self.text)
        return found.group() if found else "\n"


@frozen(eq=False)
class Entry:
    """One ``key: value`` of a mapping. ``span`` covers key and value."""

    key: str
    key_span: Span
    value: Node
    span: Span


@frozen(eq=False)
class Node:
    """A value of a JSON or YAML document and where it stands.

    ``value`` holds a scalar as the library that reads the file would see it (HJSON for DeepSpeed, PyYAML's
    1.1 resolver for Accelerate). Duplicate keys are all kept in ``entries``; :meth:`get` returns the last.
    """

    shape: Literal["mapping", "sequence", "scalar"]
    span: Span
    value: Scalar = None
    entries: tuple[Entry, ...] = ()
    elements: tuple[Node, ...] = ()

    def entry(self, key: str) -> Entry | None:
        """The last entry with this key (what ``json.load`` and PyYAML keep), or None."""
        for entry in reversed(self.entries):
            if entry.key == key:
                return entry
        return None

    def get(self, *path: str | int) -> Node | None:
        """The node at a path below this one, or None where the path leads nowhere."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            if isinstance(step, int):
                node = node.elements[step] if -len(node.elements) <= step < len(node.elements) else None
            else:
                entry = node.entry(step)
                node = entry.value if entry else None
        return node

    def states(self, key: str) -> bool:
        """Whether a key is there with a value that is not null."""
        node = self.get(key)
        return node is not None and not (node.shape == "scalar" and node.value is None)

    def walk(self, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Node]]:
        """Every node below and including this one with its path, in document order."""
        yield path, self
        for entry in self.entries:
            yield from entry.value.walk((*path, entry.key))
        for index, element in enumerate(self.elements):
            yield from element.walk((*path, index))

    def plain(self) -> object:
        """The value as plain dicts, lists and scalars; the last of duplicate keys wins."""
        if self.shape == "mapping":
            return {entry.key: entry.value.plain() for entry in self.entries}
        if self.shape == "sequence":
            return [element.plain() for element in self.elements]
        return self.value


@dataclass(slots=True, eq=False)
class Document:
    """One file, read without loss. Subclasses add the tree of their kind."""

    file: FileText
    kind: Kind
    problems: tuple[Problem, ...] = ()
    _line_starts: list[int] = field(default_factory=list, repr=False)
    _outer_starts: list[int] = field(default_factory=list, repr=False)
    facts: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """What was found out about the text once and is asked for again: plain values, by the question."""

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def text(self) -> str:
        return self.file.text

    @property
    def whole(self) -> str:
        """The text of the file, of which ``text`` may be a part."""
        return self.text if self.file.within is None else self.file.within.outer

    def position(self, offset: int) -> Position:
        """The 1-based line and column in the file of a character offset."""
        within = self.file.within
        if within is None:
            return self.row(offset)
        if not self._outer_starts:
            self._outer_starts = [0, *(m.end() for m in _LINE_BREAK.finditer(within.outer))]
        return _position(self._outer_starts, within.offset(offset))

    def row(self, offset: int) -> Position:
        """The 1-based line and column in ``text`` of a character offset."""
        if not self._line_starts:
            self._line_starts = [0, *(m.end() for m in _LINE_BREAK.finditer(self.text))]
        return _position(self._line_starts, offset)

    def offset(self, line: int, column: int) -> int:
        """The character offset of a 1-based line and column in ``text``."""
        self.row(0)
        return self._line_starts[line - 1] + column - 1

    def in_file(self, offset: int) -> int:
        """The character offset in the file."""
        return offset if self.file.within is None else self.file.within.offset(offset)

    def cell(self, offset: int) -> CellLine | None:
        """The cell of a notebook that holds a place, with the line in it; None in any other file."""
        found = self.file.within.place_in_region(offset, self.text) if self.file.within is not None else None
        return CellLine(*found) if found is not None else None

    def edit_in_file(self, edit: Edit) -> Edit:
        """An edit of ``text`` as one of the file. Raises ValueError where it cannot be written there."""
        return edit if self.file.within is None else self.file.within.edit(edit)

    def slice(self, span: Span) -> str:
        return self.text[span.start : span.end]


def _position(line_starts: list[int], offset: int) -> Position:
    line = bisect_right(line_starts, offset)
    return Position(line, offset - line_starts[line - 1] + 1)


@frozen(eq=False)
class FileEdit:
    """One edit in one document; ``document`` is None for a new file, whose whole text the edit carries."""

    path: Path
    edit: Edit
    document: Document | None = None

    @property
    def in_file(self) -> Edit:
        """The edit in the file's whole text. Raises ValueError where it cannot be written there."""
        return self.edit if self.document is None else self.document.edit_in_file(self.edit)


@dataclass(slots=True, eq=False)
class DataDocument(Document):
    """A JSON or YAML document. ``root`` is None where the text could not be read at all."""

    root: Node | None = field(default=None, repr=False)
    reader: Callable[[FileText], DataDocument] | None = field(default=None, repr=False)
    """Reads this document again from another text of its file, where that is not the whole file."""
    strict: bool = True
    """JSON only: whether ``json.load`` would read it, too (HJSON's comments, bare words … are not strict)."""
