"""Did you mean …?"""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that a misspelt word most likely stands for; None where none is near.

    Near is at most one slip in three characters (insertions, deletions, replacements and swaps of neighbours); case
    and the difference between ``-`` and ``_`` are none. Of equally near ones that of the same length wins.
    """
    folded = _folded(word)
    allowed = max(1, len(folded) // 3)
    ranked = (
        (_distance(folded, _folded(choice), allowed), abs(len(choice) - len(word)), index, choice)
        for index, choice in enumerate(choices)
    )
    best = min(ranked, default=None)
    return best[3] if best is not None and best[0] <= allowed else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """``; did you mean "x"?`` for the nearest choice, empty where none is near."""
    found = nearest(word, choices)
    return f'; did you mean "{found}"?' if found is not None else ""


def _folded(word: str) -> str:
    return word.casefold().replace("_", "-")


def _distance(left: str, right: str, limit: int) -> int:
    """Edit distance with swaps of neighbours (optimal string alignment); ``limit + 1`` for anything beyond."""
    if abs(len(left) - len(right)) > limit or max(len(left), len(right)) > 200:
        return limit + 1
    before: list[int] = []
    above: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, above, row = above, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
    return row[-1]
