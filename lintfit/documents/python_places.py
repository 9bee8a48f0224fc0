"""Where the nodes of a libcst tree stand, as character offsets of the code that the tree prints.

libcst's own ``PositionProvider`` prints the tree as well, but counts lines and columns of every token with a regular
expression and walks the tree once more for nothing; this takes a quarter of its time. The spans are the same: without
parentheses around a node, leading lines and trailing comments; blanks have none.

Printing takes longer than parsing, and few nodes are asked for: a statement of the module is printed alone where
CPython's parser has said on which line it begins.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

Spans = Mapping[cst.CSTNode, tuple[int, int]]
"""Start and end of nodes."""


BLANKS = frozenset({cst.SimpleWhitespace, cst.TrailingWhitespace, cst.Newline})
"""Nodes that are left out, half of a tree: nothing is said of a blank, and nothing that ends with one."""

MOST_CALLS = 50_000
"""Calls within calls while a tree is printed; of Python's own functions, which take none of the machine's stack."""


class Places(CodegenState):
    """A printer that notes the offset at which each node begins and ends."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self.newline = module.default_newline
        self.offset = 0
        self.starts: list[int] = []
        self.spans: dict[cst.CSTNode, tuple[int, int]] = {}

    def add_indent_tokens(self) -> None:
        self.tokens.extend(self.indent_tokens)
        self.offset += sum(map(len, self.indent_tokens))

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.offset += len(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.starts.append(self.offset)

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.starts.pop()
        if type(node) not in BLANKS:
            # What record_syntactic_position has noted is narrower.
            self.spans.setdefault(node, (start, self.offset))

    def record_syntactic_position(self, node: cst.CSTNode, *, start_node: Any = None, end_node: Any = None) -> Any:
        return _Inner(self, node, start_node, end_node)


class _Inner:
    """Notes the part of a node that is syntax; its ends may be those of nodes inside it."""

    __slots__ = ("end_node", "node", "places", "start", "start_node")

    def __init__(self, places: Places, node: cst.CSTNode, start_node: Any, end_node: Any) -> None:
        self.places, self.node, self.start_node, self.end_node = places, node, start_node, end_node
        self.start = 0

    def __enter__(self) -> None:
        self.start = self.places.offset

    def __exit__(self, *error: object) -> None:
        spans = self.places.spans
        start = spans[self.start_node][0] if self.start_node is not None else self.start
        end = spans[self.end_node][1] if self.end_node is not None else self.places.offset
        spans[self.node] = (start, end)


def printed(node: cst.CSTNode, places: Places) -> Places:
    """The printer with what a node prints."""
    with _room():
        node._codegen(places)
    return places


@contextmanager
def _room() -> Iterator[None]:
    """Room to print in: a level of nesting takes several calls, and CPython's parser lets through thousands of levels,
    such as a chain of ``elif`` or of ``+``."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, MOST_CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def spans_of(module: cst.Module, text: str) -> Spans | None:
    """Start and end of every node but blanks; None where the tree does not print this very text."""
    places = printed(module, Places(module))
    if "".join(places.tokens) != text:
        return None
    return places.spans


def statement_spans(module: cst.Module, statement: cst.CSTNode, text: str, start: int) -> Spans | None:
    """Start and end of the nodes of one statement of the module that begins at ``start``, its decorators included.

    None where it does not print what stands there.
    """
    places = printed(statement, Places(module))
    decorators = getattr(statement, "decorators", ())
    shift = start - places.spans[decorators[0] if decorators else statement][0]
    tokens = "".join(places.tokens)
    if shift < 0 or not (text.startswith(tokens, shift) or text[shift:] + places.newline == tokens):
        return None
    return shifted(places.spans, shift)


def shifted(spans: Spans, shift: int) -> Spans:
    """The same spans, so many characters further on."""
    return {node: (start + shift, end + shift) for node, (start, end) in spans.items()}


def statement_lines(module: cst.Module, first_lines: Sequence[int]) -> Mapping[cst.CSTNode, int]:
    """The line that each statement of the module begins on, by the lines that CPython's parser gives for its own.

    CPython counts what stands behind a semicolon as a statement of its own. Empty where the two do not match.
    """
    lines: dict[cst.CSTNode, int] = {}
    count = 0
    for statement in module.body:
        if count >= len(first_lines):
            return {}
        lines[statement] = first_lines[count]
        count += len(statement.body) if isinstance(statement, cst.SimpleStatementLine) else 1
    return lines if count == len(first_lines) else {}


def lines_of(module: cst.Module) -> Mapping[cst.CSTNode, CodeRange]:
    """The same by line and column, from libcst itself."""
    with _room():
        return MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
