"""``unfrozen_parameters``: which parameters stay trainable, in the words of a spec's ``frozen_modules``.

``freeze_layers_except`` of ``axolotl/utils/freeze.py`` (0.18.0) reads each as a regular expression whose dots are
literal, matched at the beginning of a parameter's name. A range behind it (``[:32000]``) only zeroes gradients: the
whole parameter has a gradient and states.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from lintfit.documents.patterns import lazy_pattern

_RANGE = lazy_pattern(r"\[\d*:?\d*\]$")
_DIGITS = lazy_pattern(r"\[(\d)-(\d)\]\+?")
_PLAIN = lazy_pattern(r"[\w.]+")
_MOST = 256
"""Names that one expression may stand for."""


def frozen_modules(kept: object) -> tuple[str, ...] | None:
    """Everything but what the expressions fit; None where one of them is more than names and digits."""
    if not isinstance(kept, Sequence) or isinstance(kept, str):
        return None
    found = ["*"]
    for pattern in kept:
        names = _names(pattern) if isinstance(pattern, str) else None
        if names is None:
            return None
        found += [f"!{name}" for name in names]
    return tuple(found)


def _names(pattern: str) -> list[str] | None:
    """The names that an expression fits, with ``*`` behind one that it fits the beginning of."""
    text = _RANGE.sub("", pattern) if ":" in pattern else pattern
    ends = text.endswith("$")
    text = text.removeprefix("^").removesuffix("$").removesuffix(".*").removesuffix("*")
    parts = _DIGITS.split(text)
    choices = [
        [part] if index % 3 == 0 else [str(digit) for digit in range(int(part), int(parts[index + 1]) + 1)]
        for index, part in enumerate(parts)
        if index % 3 != 2
    ]
    size = 1
    for choice in choices:
        size *= len(choice)
    if size > _MOST or not all(_PLAIN.fullmatch(part) for part in parts if part):
        return None
    return ["".join(each) + ("" if ends else "*") for each in product(*choices)]
