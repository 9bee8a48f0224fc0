"""Python's own parser, asked whether a text is Python: no tree of libcst's, which takes ten times as long."""

from __future__ import annotations

import ast
import warnings


def statements(text: str) -> list[ast.stmt]:
    """The statements of a text.

    Raises SyntaxError, and where the parser gives up ValueError, RecursionError or MemoryError.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text).body


def accepts(text: str) -> bool:
    """Whether the Python that lintfit runs on takes the text."""
    try:
        statements(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
