"""What a YAML scalar means to PyYAML, which is what accelerate reads its config with.

PyYAML resolves plain scalars by the types of YAML 1.1 (https://yaml.org/type/) with some limits of its own
(``yaml/resolver.py`` of PyYAML 6): ``1e-5`` and ``1e5`` are strings for want of a dot or a sign, ``y`` and ``n`` are
strings, ``no``, ``on`` and ``off`` are booleans, ``010`` is 8 and ``12:30`` is 750.
"""

from __future__ import annotations

import re
from datetime import date

from lintfit.documents.limits import MOST_DIGITS, too_many_digits
from lintfit.documents.model import Scalar
from lintfit.documents.patterns import lazy_pattern
from lintfit.errors import shorten, shown

_BOOLEANS = {
    spelling: value
    for word, value in (("yes", True), ("no", False), ("true", True), ("false", False), ("on", True), ("off", False))
    for spelling in (word, word.capitalize(), word.upper())
}
_NULLS = {"", "~", "null", "Null", "NULL"}
_INTEGER = lazy_pattern(
    r"[-+]?(?:0b(?P<binary>[01_]+)|0x(?P<hexadecimal>[0-9a-fA-F_]+)|0(?P<octal>[0-7_]+)"
    r"|(?P<decimal>0|[1-9][0-9_]*)|(?P<sexagesimal>[1-9][0-9_]*(?::[0-5]?[0-9])+))"
)
_FLOAT = lazy_pattern(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|(?P<sexagesimal>[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)|(?P<infinite>[-+]?\.(?:inf|Inf|INF))"
    r"|(?P<nan>\.(?:nan|NaN|NAN))"
)
_TIMESTAMP = lazy_pattern(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)"
    r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?"
)
SCALAR_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "binary", "timestamp", "str")
)
_STARTS = frozenset("-+.0123456789")


class Unreadable(ValueError):
    """PyYAML's ``safe_load`` refuses this scalar; the message says why."""


class TooManyDigits(Unreadable):
    """A number that is longer than any that is read."""

    def __init__(self, digits: int) -> None:
        super().__init__(too_many_digits("", digits))
        self.digits = digits


def resolve(text: str) -> Scalar:
    """The value of a plain (unquoted, untagged) scalar. Dates come back as the text they are written as.

    Raises :class:`Unreadable` for what ``safe_load`` refuses: ``=``, ``<<``, and numbers or dates that are none.
    """
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text in _NULLS:
        return None
    if text in ("=", "<<"):
        raise Unreadable(f"{text} has a meaning of its own in YAML 1.1: put it in quotes")
    if text[0] not in _STARTS:
        return text
    # PyYAML tries the types in this order, and the patterns do share texts.
    floating = _FLOAT.fullmatch(text)
    if floating:
        return _float(text, floating)
    integer = _INTEGER.fullmatch(text)
    if integer:
        return _integer(text, integer)
    timestamp = _TIMESTAMP.fullmatch(text)
    if timestamp and timestamp["date"]:
        try:
            date.fromisoformat(text)
        except ValueError:
            raise Unreadable(f"{text} looks like a date and is none: put it in quotes") from None
    return text


def is_plain_string(text: str) -> bool:
    """Whether PyYAML reads this text, written without quotes, as this very string (as far as types go)."""
    if _TIMESTAMP.fullmatch(text):
        return False
    try:
        return resolve(text) == text and isinstance(resolve(text), str)
    except Unreadable:
        return False


def convert(tag: str, text: str) -> Scalar:
    """The value of a scalar with an explicit core tag such as ``!!int``. Raises :class:`Unreadable`."""
    kind = tag.removeprefix("tag:yaml.org,2002:")
    if kind in ("str", "binary", "timestamp"):
        return text
    if kind == "null":
        return None
    try:
        if kind == "bool":
            return _BOOLEANS[text.lower()]
        if kind == "int":
            match = _INTEGER.fullmatch(text)
            return _integer(text, match) if match else int(text)
        if kind == "float":
            match = _FLOAT.fullmatch(text)
            return _float(text, match) if match else float(text)
    except TooManyDigits:
        raise
    except (KeyError, ValueError):
        raise Unreadable(f"{shown(text)} is no {kind}") from None
    raise Unreadable(f"PyYAML's safe_load does not know the tag !{kind}")


def _integer(text: str, match: re.Match[str]) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = (match[match.lastgroup or "decimal"] or "").replace("_", "")
    if len(digits) > MOST_DIGITS:
        raise TooManyDigits(len(digits))
    try:
        match match.lastgroup:
            case "binary":
                return sign * int(digits, 2)
            case "hexadecimal":
                return sign * int(digits, 16)
            case "octal":
                return sign * int(digits or "0", 8)
            case "sexagesimal":
                return sign * int(_sexagesimal([int(part) for part in digits.split(":")]))
            case _:
                return sign * int(digits)
    except ValueError:
        raise Unreadable(f"{shorten(text)} looks like a number and is none: put it in quotes") from None


def _float(text: str, match: re.Match[str]) -> float:
    plain = text.replace("_", "").lower()
    if match["nan"]:
        return float("nan")
    if match["infinite"]:
        return float(plain.replace(".", ""))
    if match["sexagesimal"]:
        sign = -1 if plain.startswith("-") else 1
        return sign * _sexagesimal([float(part) for part in plain.lstrip("+-").split(":")])
    return float(plain)


def _sexagesimal(parts: list[int] | list[float]) -> float:
    total: float = 0
    for part in parts:
        total = total * 60 + part
    return total
