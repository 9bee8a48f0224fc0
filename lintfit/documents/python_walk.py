"""The children of a libcst node, without its whitespace and punctuation.

libcst's own ``children`` visits a node as a transformation would, which costs more than parsing it; rules that look
through whole files take this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any

import libcst as cst

_BLANK = (cst.BaseParenthesizableWhitespace, cst.EmptyLine, cst.TrailingWhitespace, cst.Comment, cst.Newline)
_PUNCTUATION = (cst.LeftParen, cst.RightParen, cst.Comma, cst.Colon, cst.Semicolon, cst.AssignEqual, cst.Dot)
SKIPPED = (*_BLANK, *_PUNCTUATION)
"""Nodes that are nobody's children here."""
_FIRST: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.FunctionDef: ("decorators", "asynchronous", "name", "type_parameters", "params", "returns", "body"),
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.IfExp: ("body", "test", "orelse"),
    cst.Lambda: ("params", "body"),
    cst.Arg: ("keyword", "value"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ExceptStarHandler: ("type", "name", "body"),
    cst.AugAssign: ("target", "operator", "value"),
}
"""Fields in the order of the text, where the class declares them in another."""


_NOTHING, _CHILD, _SEVERAL = range(3)


class _Kinds(dict[type, int]):
    """Whether what is of a type is a child, or holds several: found out once, for abstract classes take long to ask."""

    def __missing__(self, kind: type) -> int:
        node = issubclass(kind, cst.CSTNode) and not issubclass(kind, SKIPPED)
        found = self[kind] = _CHILD if node else _SEVERAL if issubclass(kind, (list, tuple)) else _NOTHING
        return found


_KINDS = _Kinds()


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes directly below one, in the order of the text."""
    for value in _fields(type(node))(node):
        kind = _KINDS[type(value)]
        if kind == _CHILD:
            yield value
        elif kind == _SEVERAL:
            for each in value:
                if _KINDS[type(each)] == _CHILD:
                    yield each


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and everything below it, in the order of the text."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(tuple(children(current))))


@lru_cache(maxsize=1 << 17)
def code_of(node: cst.CSTNode) -> str:
    """The text of a node. libcst takes longer to write one than to read it, and what is walked through comes by the
    same nodes again and again."""
    return cst.Module([]).code_for_node(node)


@cache
def _fields(kind: type[cst.CSTNode]) -> Callable[[cst.CSTNode], Sequence[Any]]:
    """What gets all fields at once that may hold children."""
    declared = [field.name for field in fields(kind) if not _is_blank(field.name)]
    first = _FIRST.get(kind, ())
    names = (*first, *(name for name in declared if name not in first))
    if len(names) > 1:
        return attrgetter(*names)
    return lambda node: [getattr(node, name) for name in names]


def _is_blank(name: str) -> bool:
    return name.startswith(("whitespace", "leading_lines", "lines_after", "lpar", "rpar", "trailing_whitespace")) or (
        name in ("comma", "semicolon", "header", "footer", "lbracket", "rbracket", "lbrace", "rbrace", "first_line",
                 "empty_lines", "indent", "newline", "encoding", "default_indent", "default_newline",
                 "has_trailing_newline")
    )  # fmt: skip


def names_of(node: cst.CSTNode) -> list[str]:
    """The names of ``a.b.c``; none for anything else."""
    if isinstance(node, cst.Name):
        return [node.value]
    if isinstance(node, cst.Attribute) and (holder := names_of(node.value)):
        return [*holder, node.attr.value]
    return []
