"""Did you mean …? The one place where words are compared."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

MAX_DISTANCE = 2
"""Slips between a misspelt word and the one that is suggested for it."""

LONGEST = 120
"""Letters of a name that is compared with others: the longest key of a config has 44, an id of Hugging Face 96 behind
its owner's name. What it takes grows with the square of them."""
_SHORT = 4
"""Below this length a single slip already makes another word, so that only one is allowed."""


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that a misspelt word most likely stands for; None where none is near.

    Near is at most :data:`MAX_DISTANCE` slips (see :func:`distance`), one where either word is short; case and the
    difference between ``-`` and ``_`` are none. Of equally near ones that of the most similar length wins, then the
    first.
    """
    if len(word) > LONGEST:
        return None
    folded = _folded(word)
    letters = _letters(folded)
    best: tuple[int, int] | None = None
    found = None
    for choice in choices:
        other = _folded(choice)
        if len(letters ^ _letters(other)) > 2 * MAX_DISTANCE:
            continue  # a slip changes two letters at most: most words are told apart without comparing them
        allowed = 1 if min(len(folded), len(other)) < _SHORT else MAX_DISTANCE
        slips = distance(folded, other, allowed)
        rank = (slips, abs(len(choice) - len(word)))
        if slips <= allowed and (best is None or rank < best):
            best, found = rank, choice
    return found


def most_alike(word: str, choices: Iterable[str], share: float) -> str | None:
    """The choice that has most in common with a long name, if that is at least ``share`` of both (difflib's ratio).

    For names of models and GPUs, which people shorten and reorder rather than misspell.
    """
    if len(word) > LONGEST:
        return None
    import difflib

    # difflib asks the same of each word, of most of them after longer work.
    near = [each for each in choices if 2 * min(len(each), len(word)) >= share * (len(each) + len(word))]
    found = difflib.get_close_matches(word, near, n=1, cutoff=share)
    return found[0] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """``; did you mean "x"?`` for the nearest choice, empty where none is near."""
    found = nearest(word, choices)
    return f'; did you mean "{found}"?' if found is not None else ""


def is_typo(word: str, meant: str) -> bool:
    """Whether a word of six letters or more is so near to another that it can be corrected without asking."""
    return len(word) >= 6 and distance(_folded(word), _folded(meant), MAX_DISTANCE) <= MAX_DISTANCE


def distance(left: str, right: str, limit: int = 10**6) -> int:
    """The least number of insertions, deletions, replacements and swaps of neighbours that make ``right`` of ``left``.

    (Optimal string alignment.) Some number above ``limit`` where it is more than that: no more of the table is filled
    in than lies within ``limit`` of its diagonal.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    far = [limit + 1] * (len(right) + 1)
    before, above, row = far, far, list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, above, row = above, row, far.copy()
        row[0] = i
        first, last = max(1, i - limit), min(len(right), i + limit)
        for j in range(first, last + 1):
            b = right[j - 1]
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row[j] = cost
        if min(row[first - 1 : last + 1]) > limit:
            return limit + 1
    return row[-1]


@lru_cache(maxsize=4096)
def _letters(word: str) -> frozenset[str]:
    return frozenset(word)


@lru_cache(maxsize=4096)
def _folded(word: str) -> str:
    return word.casefold().replace("-", "_")
