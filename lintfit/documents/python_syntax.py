"""Python's own parser, asked whether a text is Python: no tree of libcst's, which takes ten times as long."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

from lintfit.documents.limits import too_long
from lintfit.documents.python_cost import takes_long

UNPARSED = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What :func:`statements` raises."""


class TooDeepError(ValueError):
    """Python takes the text, and libcst has not the memory or the time for it."""


MAX_NESTED = 500
"""Operators that stand inside of one another: with each one more libcst needs more memory for every one that is there,
1 GB for two thousand lambdas."""
_NESTING = ("lambda", "**", "else")
"""Those of which it needs most, as words of the text. CPython itself stops at three thousand of any."""


def statements(text: str) -> list[ast.stmt]:
    """The statements of a text.

    Raises SyntaxError, and where the parser gives up ValueError, RecursionError or MemoryError; ValueError, too, where
    the text is longer than any script, and TooDeepError.
    """
    large = too_long(text)
    if large:
        raise ValueError(large)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = ast.parse(text).body
    if _nests_too_deep(text, body):
        raise TooDeepError(f"more than {MAX_NESTED} operators inside of one another: no training script")
    if takes_long(text, body):
        raise TooDeepError("chains or brackets without end: no training script")
    return body


def accepts(text: str) -> bool:
    """Whether the Python that lintfit runs on takes the text."""
    try:
        statements(text)
    except UNPARSED:
        return False
    return True


def _nests_too_deep(text: str, body: Sequence[ast.stmt]) -> bool:
    if all(text.count(operator) <= MAX_NESTED for operator in _NESTING):
        return False
    waiting: list[tuple[ast.AST, int]] = [(statement, 0) for statement in body]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_NESTED:
            return True
        inner = _right_operand(node)
        waiting += [(child, depth + (child is inner)) for child in ast.iter_child_nodes(node)]
    return False


def _right_operand(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.UnaryOp):
        return node.operand
    if isinstance(node, ast.BinOp):
        return node.right
    if isinstance(node, ast.IfExp):
        return node.orelse
    return node.body if isinstance(node, ast.Lambda) else None
