"""Patterns of paths, matched in a time that grows with the path and the pattern, not with what they might mean.

A pattern is a row of segments between slashes. ``*`` and ``?`` match within a segment, ``**`` alone in its segment any
number of them. Between two stars the earliest place that fits is as good as any later one, so that nothing is ever
tried again: neither among the characters of a segment nor among the segments of a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from lintfit.frozen import frozen

LONGEST = 4096
"""Characters of a pattern, as of the longest path (``PATH_MAX``); a longer one matches nothing."""

_NOTHING = r"(?!)"
_CLASSES = {
    "alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "xdigit": "A-Fa-f0-9",
    "space": r"\s", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "print": r"\x20-\x7e", "graph": r"\x21-\x7e",
    "punct": r"!-/:-@\[-`{-~",
}  # fmt: skip
"""POSIX classes as git has them, of ASCII."""


@frozen(eq=False)
class Pattern:
    """Segments in groups: any number of segments of a path may lie between two of them."""

    groups: tuple[tuple[re.Pattern[str], ...], ...]

    def matches(self, parts: Sequence[str], below: bool = False) -> bool:
        """Whether it matches the segments of a path; with ``below`` also what lies below something that it matches."""
        first, *others = self.groups
        if not first and not below and len(others) == 1 and len(others[0]) == 1:  # a name at any depth, as most are
            return bool(parts) and others[0][0].fullmatch(parts[-1]) is not None
        if not _fits(first, parts, 0):
            return False
        at = len(first)
        if not others:
            return at == len(parts) or (below and 0 < at < len(parts))
        *middle, last = others
        for group in middle:
            found = _find(group, parts, at)
            if found is None:
                return False
            at = found + len(group)
        if below:
            return _find(last, parts, at) is not None
        return len(parts) - len(last) >= at and _fits(last, parts, len(parts) - len(last))


def names_of(patterns: Iterable[Pattern]) -> re.Pattern[str]:
    """What the last part of a path is where one of these patterns matches it, in one expression: most names of a tree
    are none of thousands of patterns."""
    last = dict.fromkeys(pattern.groups[-1][-1].pattern if pattern.groups[-1] else ".*" for pattern in patterns)
    return re.compile("|".join(f"(?:{each})" for each in last) or _NOTHING, re.DOTALL)


def _fits(group: Sequence[re.Pattern[str]], parts: Sequence[str], at: int) -> bool:
    if len(parts) - at < len(group):
        return False
    for index, segment in enumerate(group, at):  # noqa: SIM110 - thousands of patterns are compared with each path
        if segment.fullmatch(parts[index]) is None:
            return False
    return True


def _find(group: Sequence[re.Pattern[str]], parts: Sequence[str], at: int) -> int | None:
    for start in range(at, len(parts) - len(group) + 1):
        if _fits(group, parts, start):
            return start
    return None


@lru_cache(maxsize=20_000)
def compiled(body: str, anchored: bool, full: bool) -> Pattern:
    """The pattern of a text without slashes at its ends. One that is not anchored matches at any depth.

    ``full``: with classes (``[a-z]``) and backslashes, as git's; else they stand for themselves.
    """
    texts = body.split("/") if len(body) <= LONGEST else ["[", "/"]
    groups: list[list[re.Pattern[str]]] = [[]] if anchored else [[], []]
    for index, text in enumerate(texts):
        any_folders = len(text) > 1 and not text.strip("*")  # git takes more than two stars as two
        if not any_folders:
            groups[-1].append(_segment(text, full))
        elif groups[-1] or len(groups) == 1:
            groups.append([])
        if any_folders and index == len(texts) - 1:
            groups[-1].append(_segment("*", full))  # what is in a folder, not the folder
    return Pattern(tuple(map(tuple, groups)))


@lru_cache(maxsize=20_000)
def _segment(text: str, full: bool) -> re.Pattern[str]:
    """A segment as an expression in which nothing but the last star is ever tried at a second place."""
    chunks: list[str] = [""]
    for item in _items(text, full):
        if item == "*":
            chunks.append("")
        else:
            chunks[-1] += item
    first, *others = chunks
    middle = "".join(f"(?>.*?{chunk})" for chunk in others[:-1] if chunk)
    last = f".*{others[-1]}" if others else ""
    return re.compile(f"{first}{middle}{last}", re.DOTALL)


def _items(text: str, full: bool) -> Iterator[str]:
    """One expression for each character that is matched, and ``*``."""
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character in "*?":
            yield "*" if character == "*" else "."
        elif full and character == "\\":
            yield re.escape(text[at]) if at < len(text) else _NOTHING
            at += 1
        elif full and character == "[":
            item, at = _class(text, at)
            yield item
        else:
            yield re.escape(character)


def _class(text: str, at: int) -> tuple[str, int]:
    """The expression of a class whose bracket is open, and where it ends; one that is not closed matches nothing."""
    negated = text[at : at + 1] in ("!", "^")
    start = at = at + negated
    items: list[str] = []
    while at < len(text) and (text[at] != "]" or at == start):
        if text.startswith("[:", at) and (end := text.find(":]", at, at + 12)) > 0:
            items.append(_CLASSES.get(text[at + 2 : end], ""))
            at = end + 2
            continue
        low, at = _character(text, at)
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("", "]"):
            high, at = _character(text, at + 1)
            items.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else "")
        else:
            items.append(re.escape(low))
    if at >= len(text):
        return _NOTHING, len(text)
    content = "".join(items)
    if not content:
        return ("." if negated else _NOTHING), at + 1
    return f"[{'^' if negated else ''}{content}]", at + 1


def _character(text: str, at: int) -> tuple[str, int]:
    if text[at] == "\\" and at + 1 < len(text):
        return text[at + 1], at + 2
    return text[at], at + 1
