"""Where the words of a shell command begin and end as they are written, quotes and expansions whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.documents.model import Span

BLANK = " \t\n\r"
LETTERS = re.compile(r"""[^ \t\n\r\\'"`$]+""")
"""What stands for itself in a word: outside of quotes and expansions brackets do, too."""


def tokens(text: str, span: Span) -> list[Span]:
    """Cut a stretch of a command at its unquoted blanks."""
    return [*each_token(text, span)]


def each_token(text: str, span: Span) -> Iterator[Span]:
    """The same, one after the other."""
    offset, start = span.start, -1
    while offset < span.end:
        character = text[offset]
        if continues(text, offset):
            offset += 2
            continue
        if character in BLANK:
            if start >= 0:
                yield _trimmed(text, start, offset)
                start = -1
            offset += 1
            continue
        if start < 0:
            if character == "#":
                break_at = text.find("\n", offset, span.end)
                offset = span.end if break_at < 0 else break_at
                continue
            start = offset
        plain = LETTERS.match(text, offset, span.end)
        offset = plain.end() if plain is not None else min(skip(text, offset, span.end), span.end)
    if start >= 0:
        yield _trimmed(text, start, span.end)


def _trimmed(text: str, start: int, end: int) -> Span:
    """A token without the continuations behind it."""
    while end - 2 > start and continues(text, end - 2):
        end -= 2
    return Span(start, end)


def continues(text: str, offset: int) -> bool:
    """Whether a backslash here joins its line to the next."""
    return text.startswith("\\\n", offset)


_PLAIN = re.compile(r"""[^\\'"`$(){}]+""")
"""What neither ends a quoted string or an expansion nor begins one."""
_CLOSERS = {"(": ")", "{": "}"}


def skip(text: str, offset: int, end: int) -> int:
    """Behind the character, quoted string or expansion that starts at ``offset``."""
    closers: list[str] = []
    while True:
        if closers and (plain := _PLAIN.match(text, offset, end)) is not None:
            offset = plain.end()
            if offset >= end:
                return offset
        character, closer = text[offset], closers[-1] if closers else ""
        if character == "\\":
            offset += 2
        elif character == closer:
            closers.pop()
            offset += 1
        elif character == "`" or (character == "'" and closer != '"'):
            close = text.find(character, offset + 1, end)
            offset = end if close < 0 else close + 1
        elif character == '"':
            closers.append('"')
            offset += 1
        elif text.startswith(("$(", "${"), offset):
            closers.append(_CLOSERS[text[offset + 1]])
            offset += 2
        else:
            if _CLOSERS.get(character) == closer:
                closers.append(closer)
            offset += 1
        if not closers or offset >= end:
            return offset


def skip_dollar(text: str, offset: int, end: int) -> int:
    """The same between double quotes, where single ones and these are characters like any other."""
    return skip(text, offset, end) if text[offset] in "$`" else offset + 1
