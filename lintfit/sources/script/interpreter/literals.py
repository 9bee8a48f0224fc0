"""The values of literals."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

import libcst as cst

from lintfit.documents import bounds

_KEPT = 1000
"""Characters of a literal whose value is kept for the next time."""


def value_of(node: cst.SimpleString | cst.Integer | cst.Float) -> object:
    """The literal's value. libcst compiles each literal to tell it; what nearly all of them are needs no compiler."""
    text = node.value
    if isinstance(node, cst.Float):
        return float(text)
    if "\\" not in text:
        if text[0] in "'\"" and (text[:3] not in ("'''", '"""') or "\r" not in text):
            quote = 3 if text[:3] in ("'''", '"""') else 1
            return text[quote:-quote]
        if text.isascii() and text.isdecimal():
            return _bounded(int(text))
    return _bounded(_compiled(text) if len(text) <= _KEPT else _compiled.__wrapped__(text))


def _bounded(value: object) -> object:
    """The value of a literal. Raises ValueError for a number of more digits than are calculated with."""
    return bounds.number(value) if isinstance(value, int) else value


@lru_cache(maxsize=1024)
def _compiled(literal: str) -> object:
    """The value of a literal. Python would warn of a stray backslash in it, which is not the user's question."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.literal_eval(literal)
