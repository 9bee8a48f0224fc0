"""Edits of Python text that need no syntax tree beyond a span."""

from __future__ import annotations

import re

from lintfit.documents.model import Document, Edit, Span

_AFTER = re.compile(r"[ \t]*,[ \t]*")
_LINE_BEFORE = re.compile(r"(?:\r\n|\r|\n)[ \t]*\Z")
_LINE_AFTER = re.compile(r"(?=[ \t]*(?:\r\n|\r|\n))")
_COMMA_BEFORE = re.compile(r",\s*\Z")


def without_argument(document: Document, argument: Span) -> Edit:
    """The edit that takes an argument out of a call, with its comma and, where it stands alone, its line."""
    text = document.text
    start, end = argument.start, argument.end
    comma = _AFTER.match(text, end)
    own_line = _LINE_BEFORE.search(text, 0, start)
    if comma is not None:
        if own_line is not None and _LINE_AFTER.match(text, comma.end()):
            return Edit(Span(own_line.start(), comma.end()), "")
        return Edit(Span(start, comma.end()), "")
    before = _COMMA_BEFORE.search(text, 0, start)
    if before is None:
        return Edit(Span(start, end), "")
    keeps_comma = own_line is not None
    return Edit(Span(before.start() + (1 if keeps_comma else 0), end), "")
