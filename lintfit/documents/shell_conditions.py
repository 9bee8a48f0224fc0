"""The tests of ``[ … ]`` and ``[[ … ]]`` that compare known words."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence

_PLAIN = re.compile(r"[\w./:,=@%+-]*")
"""A word that means the same as a string and as a pattern."""
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}


def test(words: Sequence[str | None]) -> bool | None:
    """Whether a test of these words is true; None where a word is not known or the test is of another kind.

    ``A = B``, ``A == B``, ``A != B``, ``-z A``, ``-n A`` and the comparisons of integers (Bash manual, 6.4).
    """
    known = [word for word in words if word is not None]
    if len(known) != len(words):
        return None
    if known[:1] == ["!"]:
        inner = test(known[1:])
        return None if inner is None else not inner
    if len(known) == 2 and known[0] in ("-z", "-n"):
        return (known[1] == "") is (known[0] == "-z")
    return _compared(*known) if len(known) == 3 else None


def _compared(left: str, sign: str, right: str) -> bool | None:
    if sign in _NUMBERS:
        numbers = _NUMBER.fullmatch(left) and _NUMBER.fullmatch(right)
        return _NUMBERS[sign](int(left), int(right)) if numbers else None
    if sign in ("=", "==", "!=") and _PLAIN.fullmatch(right):
        return (left == right) is (sign != "!=")
    return None
