"""Takes a rule out of a comment, or the comment out of its file."""

from __future__ import annotations

from lintfit.documents.lines import line_end, line_start
from lintfit.documents.model import Edit, Span
from lintfit.suppression.comments import Directive


def without(directive: Directive, name: Span) -> Edit:
    """The edit that takes one of the names (by its place) out of the comment; the last one takes the comment along."""
    spans = [span for _, span in directive.names or ()]
    if len(spans) < 2:
        return Edit(_whole(directive), "")
    index = spans.index(name)
    if index + 1 < len(spans):
        return Edit(Span(name.start, spans[index + 1].start), "")
    return Edit(Span(spans[index - 1].end, name.end), "")


def _whole(directive: Directive) -> Span:
    """The comment with the blanks before it; with its line where nothing else stands there."""
    text, span = directive.document.text, directive.span
    start = line_start(text, span.start)
    end = line_end(text, span.end, breaks=False)
    behind = text[span.end : end].strip(" \t")
    if not behind and not text[start : span.start].strip(" \t"):
        return Span(start, line_end(text, span.end))
    if behind:
        return Span(span.start, span.end + len(text[span.end : end]) - len(text[span.end : end].lstrip(" \t")))
    return Span(len(text[: span.start].rstrip(" \t")), end)
