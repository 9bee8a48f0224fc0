"""Whole numbers as text spells them, as far as any run has them."""

from __future__ import annotations

MOST_DIGITS = 100
"""Digits of a number that is still read. Python itself reads and writes no more than 4,300 of them; what is worked out
from a few numbers of this length stays well below."""


def whole(text: str | None) -> int | None:
    """The number that ASCII digits spell, blanks around them and a sign before them aside.

    None for any other text: ``²`` is a digit and no number. None also for more digits than any number of a run has.
    """
    stripped = text.strip() if text is not None else ""
    digits = stripped[1:] if stripped[:1] in ("+", "-") else stripped
    if not (digits.isascii() and digits.isdigit()) or len(digits) > MOST_DIGITS:
        return None
    return int(stripped)


def natural(text: str | None) -> int | None:
    """The number that digits alone spell, as :func:`whole` reads it; None for anything with a sign or a blank."""
    return whole(text) if text is not None and text.isdigit() else None
