"""Which lines of a text became which of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_WHOLE = 1000
"""Lines up to which those that come often (blank ones) are looked at as well: in longer texts that takes too long."""


def line_changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The runs of lines that differ: where each begins and ends in the old text, and in the new one.

    What the texts begin and end with is no change: among lines that are all alike the matcher would take any for the
    others.
    """
    import difflib

    head = _alike(old, new)
    old, new = old[head:], new[head:]
    tail = _alike(old[::-1], new[::-1])
    old, new = old[: len(old) - tail], new[: len(new) - tail]
    autojunk = max(len(old), len(new)) > _WHOLE
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=autojunk).get_opcodes():
        if tag != "equal":
            yield head + i1, head + i2, head + j1, head + j2


def _alike(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines two texts have in common from their first on."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(old), len(new)))
