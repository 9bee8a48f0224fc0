"""Python as libcst reads it: a tree whose every node has a span, parsed only when it is asked for."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import CodeRange

from lintfit.documents.limits import MAX_BYTES, too_large
from lintfit.documents.model import Document, FileText, Kind, Problem, Span
from lintfit.documents.python_places import lines_of, spans_of
from lintfit.documents.python_walk import children


@dataclass(slots=True, eq=False)
class _Tree:
    module: cst.Module | None
    problems: tuple[Problem, ...]
    spans: Mapping[cst.CSTNode, tuple[int, int]] | None = None
    lines: Mapping[cst.CSTNode, CodeRange] | None = None
    """Where the tree does not print the text as it is."""
    parents: dict[cst.CSTNode, cst.CSTNode] | None = None


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What CPython's parser says: a syntax error, or why it does not read the text at all."""

    error: SyntaxError | None = None
    refusal: str = ""

    @property
    def accepts(self) -> bool:
        return self.error is None and not self.refusal


class PythonDocument(Document):
    """A Python file. Asking for ``module`` or ``editable`` makes its tree, once; ``problems`` alone does without it."""

    __slots__ = ("_opinion", "_tree")

    def __init__(self, file: FileText) -> None:
        self._tree: _Tree | None = None
        self._opinion: _Opinion | None = None
        super().__init__(file, Kind.PYTHON)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """One ``syntax-error``, or none.

        Where CPython's parser has nothing to say, libcst's, which takes ten times as long, is not asked for it.
        """
        if self._tree is None and len(self.text) <= MAX_BYTES[Kind.PYTHON] and self._cpython().accepts:
            return ()
        return self._parsed().problems

    @problems.setter
    def problems(self, problems: tuple[Problem, ...]) -> None:
        # The base class sets its empty default; problems are known only once the text is parsed.
        assert not problems

    @property
    def module(self) -> cst.Module | None:
        """The tree, or None where the text is no Python."""
        return self._parsed().module

    @property
    def editable(self) -> bool:
        """Whether edits may be spliced in: the tree is this very text (libcst drops rare trailing blanks)."""
        module = self.module
        return module is not None and module.code == self.text

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node of ``module`` stands, without parentheses around it, leading lines and trailing comments."""
        tree = self._parsed()
        if tree.spans is None and tree.lines is None:
            assert tree.module is not None
            tree.spans = spans_of(tree.module, self.text)
            tree.lines = lines_of(tree.module) if tree.spans is None else None
        if tree.spans is not None:
            start, end = tree.spans[node]
            # The line break behind the last statement is printed and taken back.
            return Span(start, min(end, len(self.text)))
        assert tree.lines is not None
        place = tree.lines[node]
        return Span(
            self.offset(place.start.line, place.start.column + 1), self.offset(place.end.line, place.end.column + 1)
        )

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that directly holds this one; None for the module."""
        tree = self._parsed()
        if tree.parents is None:
            tree.parents = {}
            pending: list[cst.CSTNode] = [tree.module] if tree.module else []
            while pending:
                current = pending.pop()
                for child in children(current):
                    tree.parents[child] = current
                    pending.append(child)
        return tree.parents.get(node)

    def _cpython(self) -> _Opinion:
        if self._opinion is None:
            self._opinion = _ask_cpython(self.text)
        return self._opinion

    def _parsed(self) -> _Tree:
        if self._tree is None:
            self._tree = _parse(self)
        return self._tree


def read_python(file: FileText) -> PythonDocument:
    """A document of this text. Parses nothing yet; bad text shows in :attr:`PythonDocument.problems`."""
    return PythonDocument(file)


def _parse(document: PythonDocument) -> _Tree:
    text = document.text
    if len(text) > MAX_BYTES[Kind.PYTHON]:
        return _failed(too_large(Kind.PYTHON), 0, 0)
    # CPython's parser knows its own limits and gives better messages; libcst knows newer syntax.
    opinion = document._cpython()
    if opinion.refusal:
        return _failed(opinion.refusal, 0, 0)
    error = opinion.error
    if error is not None and "too many" in error.msg:
        return _failed(error.msg, *_place(document, error.lineno, error.offset))
    try:
        return _Tree(cst.parse_module(text), ())
    except cst.ParserSyntaxError as found:
        if error is not None:
            return _failed(error.msg, *_place(document, error.lineno, error.offset))
        return _failed(found.message.split("\n")[0], *_place(document, found.raw_line, found.raw_column + 1))
    except (RecursionError, UnicodeError):
        return _failed("nested too deeply to be read", 0, 0)


def _ask_cpython(text: str) -> _Opinion:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return _Opinion(error=error)
    except (RecursionError, MemoryError):
        return _Opinion(refusal="nested too deeply for Python's own parser")
    except ValueError as error:
        return _Opinion(refusal=str(error))
    return _Opinion()


def _failed(detail: str, start: int, end: int) -> _Tree:
    return _Tree(None, (Problem("syntax-error", detail, Span(start, end)),))


def _place(document: PythonDocument, line: int | None, column: int | None) -> tuple[int, int]:
    text = document.text
    if not line:
        return 0, 0
    try:
        start = min(document.offset(line, max(1, column or 1)), len(text))
    except IndexError:
        start = len(text)
    return start, min(start + 1, len(text))
