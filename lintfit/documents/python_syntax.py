"""Python's own parser, asked whether a text is Python: no tree of libcst's, which takes ten times as long."""

from __future__ import annotations

import ast
import warnings

from lintfit.documents.limits import too_long

UNPARSED = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What :func:`statements` raises."""


def statements(text: str) -> list[ast.stmt]:
    """The statements of a text.

    Raises SyntaxError, and where the parser gives up ValueError, RecursionError or MemoryError; ValueError, too, where
    the text is longer than any script.
    """
    large = too_long(text)
    if large:
        raise ValueError(large)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text).body


def accepts(text: str) -> bool:
    """Whether the Python that lintfit runs on takes the text."""
    try:
        statements(text)
    except UNPARSED:
        return False
    return True
