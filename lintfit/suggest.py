"""Did you mean …?"""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """``; did you mean "x"?`` for the choice nearest to a misspelt word, empty where none is near."""
    from difflib import get_close_matches

    by_folded = {choice.casefold().replace("_", "-"): choice for choice in choices}
    near = get_close_matches(word.casefold().replace("_", "-"), by_folded, n=1, cutoff=0.6)
    return f'; did you mean "{by_folded[near[0]]}"?' if near else ""
