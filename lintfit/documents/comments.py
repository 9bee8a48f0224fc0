"""Where the comments of a document stand, and which of them are gone after a change."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lintfit.documents.lines import line_end
from lintfit.documents.model import DataDocument, Document, Kind, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.memo import Memo

SIGN = lazy_pattern(r"#|//|/\*")
"""What begins a comment; JSON knows all three, every other kind the first only."""

_HASH = lazy_pattern(r"(?:^|(?<=[ \t\r\n;]))#")


def comments(document: Document) -> tuple[Span, ...]:
    """The comments of a document in order, each without its line break.

    Of a shell script they are also those in the files that it writes with here-documents. Text that cannot be read has
    those up to where that is so (Python), or whatever looks like one.
    """
    sign = "#" if document.kind is not Kind.JSON else ""
    return _FOUND.get(document, None, lambda: tuple(_found(document))) if sign in document.text else ()


_FOUND: Memo[tuple[Span, ...]] = Memo(most=16)
"""They are asked for at each of the edits of a fix, of which there may be thousands."""


def _found(document: Document) -> Iterator[Span]:
    return _python(document) if document.kind is Kind.PYTHON else _outside(document, sorted(_values(document)))


def lost_comments(before: Document, after: Document) -> tuple[Span, ...]:
    """The comments of ``before`` that ``after`` has no longer, wherever they stand and however they are indented."""
    there = comments(before)
    if not there or before.text == after.text:
        return ()
    left = Counter(_words(after, span) for span in comments(after))
    lost: list[Span] = []
    for span in there:
        words = _words(before, span)
        if not left[words]:
            lost.append(span)
        left[words] -= bool(left[words])
    return tuple(lost)


def _words(document: Document, span: Span) -> str:
    return " ".join(document.slice(span).split())


def _python(document: Document) -> Iterator[Span]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(document.text, newline="").readline):
            if token.type == tokenize.COMMENT:
                start = document.offset(token.start[0], token.start[1] + 1)
                yield Span(start, start + len(token.string))
    except (tokenize.TokenError, SyntaxError, IndexError):
        return  # no Python from here on


def _outside(document: Document, values: list[Span]) -> Iterator[Span]:
    """Comments wherever a sign stands outside of keys, values and words."""
    text, sign = document.text, SIGN if document.kind is Kind.JSON else _HASH
    at = 0
    while (found := sign.search(text, at)) is not None:
        value = last_before(values, found.start())
        if value is not None and found.start() < value.end:
            at = value.end
            continue
        at = _end(text, found)
        yield Span(found.start(), at)


def _end(text: str, sign: re.Match[str]) -> int:
    if sign.group() == "/*":
        closing = text.find("*/", sign.end())
        return closing + 2 if closing >= 0 else len(text)
    return line_end(text, sign.end(), breaks=False)


def _values(document: Document) -> Iterator[Span]:
    """The places of keys, texts and words, within which no comment begins."""
    if document.kind is Kind.SHELL:
        yield from {word.at for command in commands_of(document) for word in command.words}
    root = document.root if isinstance(document, DataDocument) else None
    for _, node in root.walk() if root is not None else ():
        if node.shape == "scalar":
            yield node.span
        for entry in node.entries:
            yield entry.key_span


def last_before(spans: Sequence[Span], offset: int) -> Span | None:
    """The last of some spans in order that begins at a place or before it."""
    index = bisect_right(spans, offset, key=lambda span: span.start) - 1
    return spans[index] if index >= 0 else None


def commands_of(document: Document) -> Iterable[Any]:
    """The commands of a shell script."""
    # A ShellDocument's; its module brings tree-sitter, which no other kind needs.
    return getattr(document, "commands", ())
