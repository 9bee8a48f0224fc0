"""Scalars of a config file as setting values: the number, truth or word that its library makes of them.

Each reader returns ``AUTO`` for the word ``"auto"`` and ``UNKNOWN`` for anything the library would refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lintfit.documents.numerals import whole
from lintfit.settings.model import AUTO, UNKNOWN, Special

Reader = Callable[[Any], Any]

_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


def integer(value: Any) -> int | Special:
    """A whole number, also where it is written as a float (``5e8``). Strings of digits are not numbers here."""
    if value == "auto":
        return AUTO
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return UNKNOWN
    return int(value) if value == value and abs(value) != float("inf") and value == int(value) else UNKNOWN


def coerced_integer(value: Any) -> int | Special:
    """A whole number as pydantic's lax mode reads one: also from digits in a string."""
    spelled = whole(value) if isinstance(value, str) else None
    return spelled if spelled is not None else integer(value)


def number(value: Any) -> float | int | Special:
    """A number; ``true`` counts as 1, as it does in Python's arithmetic."""
    if value == "auto":
        return AUTO
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (int, float)) else UNKNOWN


def truth(value: Any) -> bool | Special:
    """A truth value as pydantic's lax mode reads one: booleans, 0 and 1, and words such as ``"True"``."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return bool(value) if value in (0, 1) else UNKNOWN
    if isinstance(value, str):
        lowered = value.strip().lower()
        if lowered == "auto":
            return AUTO
        if lowered in _TRUE:
            return True
        if lowered in _FALSE:
            return False
    return UNKNOWN


def word(value: Any) -> str | Special:
    """A non-empty string."""
    if value == "auto":
        return AUTO
    return value if isinstance(value, str) and value else UNKNOWN


def one_of(*allowed: str) -> Reader:
    """A reader of words that knows only ``allowed``."""

    def read(value: Any) -> str | Special:
        if value == "auto":
            return AUTO
        return value if isinstance(value, str) and value in allowed else UNKNOWN

    return read


def lowered(*allowed: str) -> Reader:
    """The same of words in any case: accelerate writes a device in small letters before it hands it on (``None``, which
    YAML takes for a word)."""
    read = one_of(*allowed)
    return lambda value: read(value.lower() if isinstance(value, str) else value)
