"""Python as libcst reads it: a tree whose every node has a span, parsed only when it is asked for."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import CodeRange

from lintfit.documents.limits import MAX_BYTES, too_large
from lintfit.documents.model import Document, FileText, Kind, Problem, Span
from lintfit.documents.python_places import lines_of, spans_of, statement_lines, statement_spans
from lintfit.documents.python_walk import SKIPPED, children


@dataclass(slots=True, eq=False)
class _Tree:
    module: cst.Module | None
    problems: tuple[Problem, ...]
    spans: dict[cst.CSTNode, tuple[int, int]] = field(default_factory=dict)
    """Of the statements that were asked for so far, or of all nodes."""
    whole: bool = False
    """Whether ``spans`` or ``lines`` hold all nodes."""
    lines: Mapping[cst.CSTNode, CodeRange] | None = None
    """Where the tree does not print the text as it is."""
    starts: Mapping[cst.CSTNode, int] | None = None
    """The first lines of the module's statements."""
    parents: dict[cst.CSTNode, cst.CSTNode] | None = None
    editable: bool | None = None


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What CPython's parser says: a syntax error, or why it does not read the text at all."""

    error: SyntaxError | None = None
    refusal: str = ""
    first_lines: tuple[int, ...] = ()
    """Where the module's statements begin, with their decorators."""

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
        tree = self._parsed()
        if tree.editable is None:
            tree.editable = tree.module is not None and tree.module.code == self.text
        return tree.editable

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node of ``module`` stands, without parentheses around it, leading lines and trailing comments.

        KeyError where it is no node of it.
        """
        tree = self._parsed()
        if node not in tree.spans and not tree.whole:
            self._locate(tree, node)
        if tree.lines is None:
            start, end = tree.spans[node]
            # The line break behind the last statement is printed and taken back.
            return Span(start, min(end, len(self.text)))
        place = tree.lines[node]
        return Span(
            self.offset(place.start.line, place.start.column + 1), self.offset(place.end.line, place.end.column + 1)
        )

    def _locate(self, tree: _Tree, node: cst.CSTNode) -> None:
        """Find the spans of the module's statement that holds a node; of the whole tree where that cannot be done."""
        if tree.module is None:
            raise KeyError(node)
        parents = self._parents()
        if node not in parents and not isinstance(node, (cst.Module, *SKIPPED)):
            raise KeyError(node)
        if tree.starts is None:
            tree.starts = statement_lines(tree.module, self._cpython().first_lines)
        statement = node
        while (above := parents.get(statement)) is not None and above is not tree.module:
            statement = above
        if statement in tree.starts:
            start = self.offset(tree.starts[statement], 1)
            spans = statement_spans(tree.module, statement, self.text, start)
            if spans is not None:
                tree.spans.update(spans)
                return
        found = spans_of(tree.module, self.text)
        tree.whole = True
        tree.spans = dict(found or {})
        tree.lines = lines_of(tree.module) if found is None else None

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that directly holds this one; None for the module."""
        return self._parents().get(node)

    def _parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        tree = self._parsed()
        if tree.parents is None:
            tree.parents = {}
            pending: list[cst.CSTNode] = [tree.module] if tree.module else []
            while pending:
                current = pending.pop()
                for child in children(current):
                    tree.parents[child] = current
                    pending.append(child)
        return tree.parents

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
            body = ast.parse(text).body
    except SyntaxError as error:
        return _Opinion(error=error)
    except (RecursionError, MemoryError):
        return _Opinion(refusal="nested too deeply for Python's own parser")
    except ValueError as error:
        return _Opinion(refusal=str(error))
    return _Opinion(first_lines=tuple(map(_first_line, body)))


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", ())
    return decorators[0].lineno if decorators else statement.lineno


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
