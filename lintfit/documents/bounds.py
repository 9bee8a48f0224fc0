"""How large a value may get that is worked out of text that users write: each is bounded where it is made.

Whoever evaluates a script, a shell script or a config makes its texts, numbers and collections here, or asks here
before it does. What that costs of the one counter (:mod:`.steps`) is said here, too. What would get larger is
:class:`TooLarge`, and therefore not known.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

MAX_TEXT = 100_000
"""Characters that a computed text may have."""
MAX_ITEMS = 20_000
"""Elements that a computed list or table may have."""
MAX_BITS = 4096
"""Of a computed whole number: 1,233 digits. Nothing that trains counts further."""
MAX_LEVELS = 60
"""Levels of lists in lists that are looked into; those of real configs are below ten."""
MAX_VALUES = 4_000
"""Values that are looked at where lists hold one another many times over."""

MAX_WRAPS = 30
"""Objects that wrap one another, or classes that one inherits from, which are looked through: real are under 10."""

_CHARACTERS = 200
_ITEMS = 10
"""So many of them are made, copied or compared for one step: as long as an expression takes by itself."""


class TooLarge(ValueError):
    """A value that would be larger than any that a user means."""


def cost(characters: int = 0, items: int = 0) -> int:
    """The steps that so many characters or elements take; small ones are a part of the expression."""
    return characters // _CHARACTERS + items // _ITEMS


def fits(count: int, most: int = MAX_TEXT) -> int:
    """The same count. Raises :class:`TooLarge` where it is more than there may be."""
    if count > most:
        raise TooLarge(f"more than {most}")
    return count


def number(value: Any) -> Any:
    """The same number. Raises :class:`TooLarge` for a complex one, and one of more digits than anybody uses."""
    if isinstance(value, complex) or (isinstance(value, int) and value.bit_length() > MAX_BITS):
        raise TooLarge("a number of very many digits")
    return value


_MAX_KEY = sys.hash_info.modulus
"""What Python's hash of a whole number is taken by: a table of its multiples is one long row that every look goes
through."""


def is_key(value: Any) -> bool:
    """Whether a value may be a key of a computed table: any but a whole number that could be its own multiple."""
    return not isinstance(value, int) or abs(value) < _MAX_KEY


def joined(parts: Sequence[str], between: str = "") -> str:
    """``between.join(parts)``."""
    fits(sum(map(len, parts)) + len(between) * max(0, len(parts) - 1))
    return between.join(parts)


def replaced(text: str, old: str, new: str, most: int = -1) -> str:
    """``text.replace(old, new, most)``."""
    found = text.count(old)
    fits(len(text) + (found if most < 0 else min(found, most)) * max(0, len(new) - len(old)))
    return text.replace(old, new, most)


_WIDE = re.compile(r"%[^%a-zA-Z]*?(?:\*|[0-9]{4})")
"""A field of ``%`` whose width or precision is no reader's, or another value's."""
_WIDE_FIELD = re.compile(r"\{[^{}]*(?:\{|[0-9]{4})")
"""The same of ``str.format``."""
_FIELD = 2400
"""Characters that one field takes by itself at most: a number of :data:`MAX_BITS`, or the 309 digits of a float, with a
width and a precision of three digits."""
_ESCAPED = 10
"""Characters that ``repr`` writes for one (``\\U0010ffff``)."""


def by_percent(template: str, values: Any) -> str:
    """``template % values``, a value or a tuple of them."""
    if _WIDE.search(template):
        raise TooLarge("a field of very many characters")
    _room(template, template.count("%"), values if isinstance(values, tuple) else (values,))
    return str(template % values)


def by_format(template: str, values: Sequence[Any], named: Mapping[str, Any]) -> str:
    """``template.format(*values, **named)``."""
    bare = template.replace("{{", "").replace("}}", "")
    if _WIDE_FIELD.search(bare):
        raise TooLarge("a field of very many characters")
    _room(template, bare.count("{"), (*values, *named.values()))
    return template.format(*values, **named)


def _room(template: str, fields: int, values: Sequence[Any]) -> None:
    longest = max(map(_written, values), default=0)
    fits(len(template) + fields * max(_FIELD, longest))


def _written(value: Any) -> int:
    """The characters that a value takes in a text, however it is written."""
    if isinstance(value, tuple):
        return sum(map(_written, value)) + 2 * len(value)
    return _ESCAPED * len(value) if isinstance(value, str | bytes) else _FIELD
