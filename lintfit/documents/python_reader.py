"""Python as libcst reads it: a tree whose every node has a span, parsed only when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import CodeRange

from lintfit.documents.limits import too_long
from lintfit.documents.model import NOT_READ, Document, FileText, Kind, Problem, Span
from lintfit.documents.python_blocks import LINES_ABOVE, FunctionBlock, parse_module
from lintfit.documents.python_cost import takes_long
from lintfit.documents.python_outline import Outline, outline
from lintfit.documents.python_places import Spans, lines_of, spans_of, statement_lines, statement_spans
from lintfit.documents.python_syntax import TooDeepError, statements
from lintfit.documents.python_walk import SKIPPED, children


@dataclass(slots=True, eq=False)
class _Tree:
    module: cst.Module | None
    problems: tuple[Problem, ...] = ()
    blocks: tuple[FunctionBlock, ...] = ()
    """Bodies of functions that are parsed when they are looked at."""
    spans: dict[cst.CSTNode, tuple[int, int]] = field(default_factory=dict)
    """Of the statements that were asked for so far, or of all nodes."""
    whole: bool = False
    """Whether ``spans`` or ``lines`` hold all nodes."""
    lines: Mapping[cst.CSTNode, CodeRange] | None = None
    """Where the tree does not print the text as it is."""
    starts: Mapping[cst.CSTNode, int] | None = None
    """The first lines of the module's statements."""
    parents: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    """Of all nodes but those in ``closed``."""
    closed: tuple[FunctionBlock, ...] | None = None
    prints: bool | None = None
    """Whether what is parsed of it prints the text as it is, the functions' bodies left out."""

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that directly holds this one; None for the module and for what is in no function parsed so far."""
        if node not in self.parents:
            self._note_parents()
        return self.parents.get(node)

    def _note_parents(self) -> None:
        pending: list[cst.CSTNode] = []
        if self.closed is None:
            self.closed = self.blocks
            pending += [self.module] if self.module is not None else []
        pending += [block for block in self.closed if block.lines.are_parsed]
        self.closed = tuple(block for block in self.closed if not block.lines.are_parsed)
        while pending:
            current = pending.pop()
            for child in children(current):
                self.parents[child] = current
                if type(child) is not FunctionBlock:
                    pending.append(child)

    def locate_all(self, text: str) -> None:
        """Find the spans of all nodes, which parses all functions; by line and column where it prints another text."""
        assert self.module is not None
        self.whole = True
        for found in (spans_of(self.module, text), *(block.lines.spans for block in self.blocks)):
            if found is None:
                self.lines = lines_of(self.module)
                break
            self.spans.update(found)


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What CPython's parser says: a syntax error, or why it does not read the text at all."""

    error: SyntaxError | None = None
    refusal: str = ""
    too_deep: str = ""
    """Why libcst is not asked to read what CPython takes."""
    outline: Outline = field(default_factory=Outline)

    @property
    def accepts(self) -> bool:
        return self.error is None and not self.refusal and not self.too_deep


class PythonDocument(Document):
    """A Python file. Asking for ``module`` or ``editable`` makes its tree, once; ``problems`` alone does without it."""

    __slots__ = ("_opinion", "_tree")

    def __init__(self, file: FileText) -> None:
        self._tree: _Tree | None = None
        self._opinion: _Opinion | None = None
        super().__init__(file, Kind.PYTHON)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """One ``syntax-error`` where neither CPython's parser nor libcst's takes the text, else none.

        ``not-read`` is what lintfit itself cannot read: text of too many lines, or what only libcst refuses, once that
        is asked; one for each function of the kind.
        Where CPython's parser has nothing to say, libcst's, which takes ten times as long, is not asked for it.
        """
        if self._tree is None and ("accepted" in self.facts or (not too_long(self.text) and self._cpython().accepts)):
            self.facts["accepted"] = True
            return ()
        tree = self._parsed()
        unread = (_unread(self, block) for block in tree.blocks if block.lines.error is not None)
        problems = (*tree.problems, *unread)
        if not problems and self._cpython().accepts:
            self.facts["accepted"] = True
        return problems

    @problems.setter
    def problems(self, problems: tuple[Problem, ...]) -> None:
        # The base class sets its empty default; problems are known only once the text is parsed.
        assert not problems

    @property
    def module(self) -> cst.Module | None:
        """The tree, or None where the text is no Python. Its functions are parsed when they are looked at."""
        return self._parsed().module

    @property
    def editable(self) -> bool:
        """Whether edits may be spliced in: the tree is this very text (libcst drops rare trailing blanks).

        Of functions that nobody has looked at nothing is said, nor can anything in them be edited.
        """
        tree = self._parsed()
        if tree.module is None:
            return False
        if tree.prints is None:
            tree.prints = spans_of(tree.module, self.text) is not None
        return tree.prints and all(block.lines.spans is not None for block in tree.blocks if block.lines.are_parsed)

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

    def holds(self, node: cst.CSTNode) -> bool:
        """Whether a node is one of ``module``. Finds no span, which takes longer."""
        tree = self._parsed()
        if node in tree.spans or tree.parent(node) is not None:
            return True
        if tree.whole or not isinstance(node, (cst.Module, *SKIPPED)):
            return False
        try:
            self.span(node)
        except KeyError:
            return False
        return True

    def _locate(self, tree: _Tree, node: cst.CSTNode) -> None:
        """Find the spans of the statement of the module, or of the function, that holds a node; else of all nodes."""
        if tree.module is None:
            raise KeyError(node)
        statement, above = node, tree.parent(node)
        if above is None and not isinstance(node, (cst.Module, *SKIPPED)):
            raise KeyError(node)
        while above is not None and above is not tree.module and type(above) is not FunctionBlock:
            statement, above = above, tree.parent(above)
        spans = above.lines.spans if isinstance(above, FunctionBlock) else self._statement_spans(tree, statement)
        if spans is not None:
            tree.spans.update(spans)
        else:
            tree.locate_all(self.text)

    def _statement_spans(self, tree: _Tree, statement: cst.CSTNode) -> Spans | None:
        """The spans of a statement of the module; None where they is not statically known by it alone."""
        assert tree.module is not None
        if tree.starts is None:
            tree.starts = statement_lines(tree.module, self._cpython().outline.first_lines)
        if statement not in tree.starts:
            return None
        return statement_spans(tree.module, statement, self.text, self.offset(tree.starts[statement], 1))

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that directly holds this one; None for the module."""
        return self._parsed().parent(node)

    def _cpython(self) -> _Opinion:
        if self._opinion is None:
            self._opinion = _ask_cpython(self)
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
    large = too_long(text)
    if large:
        return _Tree(None, (_not_read(large, 0, 0),))
    # CPython's parser knows its own limits and gives better messages; libcst knows newer syntax.
    opinion = document._cpython()
    if opinion.too_deep:
        return _Tree(None, (_not_read(opinion.too_deep, 0, 0),))
    if opinion.refusal:
        return _failed(opinion.refusal, 0, 0)
    error = opinion.error
    if error is not None and ("too many" in error.msg or takes_long(text)):
        return _failed(error.msg, *_place(document, error.lineno, error.offset))
    try:
        module, blocks = parse_module(text, opinion.outline.bodies)
        return _Tree(module, blocks=blocks)
    except cst.ParserSyntaxError as found:
        if error is not None:
            return _failed(error.msg, *_place(document, error.lineno, error.offset))
        place = _place(document, found.raw_line, found.raw_column + 1)
        return _Tree(None, (_not_read(_message(found), *place),))
    except (RecursionError, UnicodeError) as found:
        return _Tree(None, (_not_read(_message(found), 0, 0),))


def _unread(document: PythonDocument, block: FunctionBlock) -> Problem:
    """Why libcst could not read the body of a function."""
    error, start = block.lines.error, block.lines.place.start
    if isinstance(error, cst.ParserSyntaxError):
        line = document.row(start).line + error.raw_line - 1 - LINES_ABOVE
        return _not_read(_message(error), *_place(document, line, error.raw_column + 1))
    return _not_read(_message(error), start, start)


def _message(error: cst.ParserSyntaxError | RecursionError | UnicodeError | None) -> str:
    return error.message.split("\n")[0] if isinstance(error, cst.ParserSyntaxError) else "nested too deeply to be read"


def _ask_cpython(document: PythonDocument) -> _Opinion:
    try:
        body = statements(document.text)
    except SyntaxError as error:
        return _Opinion(error=error)
    except TooDeepError as error:
        return _Opinion(too_deep=str(error))
    except (RecursionError, MemoryError):
        return _Opinion(refusal="nested too deeply for Python's own parser")
    except ValueError as error:
        return _Opinion(refusal=str(error))
    return _Opinion(outline=outline(document, body))


def _failed(detail: str, start: int, end: int) -> _Tree:
    return _Tree(None, (Problem("syntax-error", detail, Span(start, end)),))


def _not_read(detail: str, start: int, end: int) -> Problem:
    return Problem(NOT_READ, detail, Span(start, end))


def _place(document: PythonDocument, line: int | None, column: int | None) -> tuple[int, int]:
    text = document.text
    if not line:
        return 0, 0
    try:
        start = min(document.offset(line, max(1, column or 1)), len(text))
    except IndexError:
        start = len(text)
    return start, min(start + 1, len(text))
