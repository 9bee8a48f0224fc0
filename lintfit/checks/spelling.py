"""Which known key a misspelt one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def distance(left: str, right: str) -> int:
    """Levenshtein's distance: the least number of characters to insert, delete or replace."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that this one is near enough to for a "did you mean", None where none is."""
    from difflib import get_close_matches

    folded = {name.replace("-", "_").lower(): name for name in sorted(known)}
    near = get_close_matches(word.replace("-", "_").lower(), folded, n=1, cutoff=0.75)
    return folded[near[0]] if near else None


def is_typo(word: str, meant: str) -> bool:
    """Whether a word is so near to another (two characters, in a word of six or more) that it can be corrected."""
    return len(word) >= 6 and distance(word.replace("-", "_").lower(), meant.lower()) <= 2
