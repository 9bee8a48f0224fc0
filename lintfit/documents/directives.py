"""Reads the comments that speak to lintfit, and takes a name out of one.

``# lintfit: ignore[rule, LF101] reason`` at the end of a line covers that line, and the whole statement where it is the
statement's first or last line. On a line of its own it covers the next line of code, and the whole statement (Python)
or command (shell) that begins there; of a compound statement only its header. ``# lintfit: file-ignore[rule]`` covers
the file. JSON also knows ``//`` and ``/* */``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.documents.comment_layout import Layout, layout
from lintfit.documents.lines import line_end, line_start
from lintfit.documents.model import Document, Edit, Kind, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen
from lintfit.memo import Memo

MOST = 1000
"""Comments of a file that are heeded, the first ones."""
IGNORE, FILE_IGNORE = "ignore", "file-ignore"

_MARK = "lintfit:"
_DIRECTIVE = lazy_pattern(
    r"(?P<sign>\#|//|/\*)[ \t]*lintfit:[ \t]*(?P<word>[A-Za-z][\w-]*)(?:[ \t]*\[(?P<rules>[^\]\r\n]{0,4000})\])?"
)
_NAME = lazy_pattern(r"[^\s,]+")
_NEXT_COMMENT = lazy_pattern(r"(?<![ \t])[ \t]+#[ \t]*(?=[A-Za-z])")
_CODE_LINE = lazy_pattern(r"^[ \t]*(?!#|/[/*]|[ \t\r\n]|\Z)", re.MULTILINE)


@frozen(eq=False)
class Directive:
    """One ``lintfit:`` comment as it is written.

    ``word`` is what follows the colon, at ``word_span``; ``names`` are the rules in its brackets, each with its place,
    None where it has no brackets. ``span`` reaches from the comment's sign to its end; a further comment behind it on
    the line does not belong to it. ``covers`` are the lines that it speaks of, its own among them: a comment may be
    what a finding is about. ``alone``: nothing but comments stand on its line.
    """

    document: Document
    word: str
    word_span: Span
    names: tuple[tuple[str, Span], ...] | None
    span: Span
    covers: Span
    alone: bool

    @property
    def silences(self) -> bool:
        """Whether it is one of the two comments that silence anything."""
        return self.word in (IGNORE, FILE_IGNORE)

    def reaches(self, span: Span) -> bool:
        """Whether a place begins on the lines that this covers, or (a comment behind code) ends there."""
        offsets = (span.start, *(() if self.alone else (last_of(span),)))
        return any(self.covers.start <= at <= self.covers.end for at in offsets)


def last_of(span: Span) -> int:
    """The last character of a place."""
    return max(span.start, span.end - 1)


def directives(document: Document) -> tuple[Directive, ...]:
    """Every ``lintfit:`` comment of a document, in order. Where there is none, that is one search and no more."""
    return _KEPT.get(document, None, lambda: tuple(_read(document))) if _MARK in document.text else ()


_KEPT: Memo[tuple[Directive, ...]] = Memo(most=256)
"""A check asks four times for those of each document."""


def _read(document: Document) -> Iterator[Directive]:
    text = document.text
    lines: Layout | None = None
    behind = found = 0
    code = -1
    """Where the next line of code begins, once it was looked for: comments may stand before it by the thousand."""
    for match in _DIRECTIVE.finditer(text):
        if match.start() < behind or found == MOST:
            continue  # a part of the comment before it; more than any file has
        if match["sign"] != "#" and document.kind is not Kind.JSON:
            continue
        lines = lines or layout(document)
        if not lines.is_comment(match.start()):
            continue
        line = lines.line_at(match.start())
        end = behind = _end(text, match)
        found += 1
        code_behind = match["sign"] == "/*" and text[end : line.end].strip(" \t")
        alone = _comments_only(lines, line, match.start()) and not code_behind
        if alone and code < line_end(text, line.end):
            following = _CODE_LINE.search(text, line_end(text, line.end))
            code = following.start() if following is not None else len(text)
        names = None
        if match["rules"] is not None:
            names = tuple((name.group(), Span(*name.span())) for name in _NAME.finditer(text, *match.span("rules")))
        whole = match["word"] == FILE_IGNORE
        yield Directive(
            document=document,
            word=match["word"],
            word_span=Span(*match.span("word")),
            names=names,
            span=Span(match.start(), end),
            covers=Span(0, len(text)) if whole else _covered(lines, line, code if alone else None),
            alone=alone,
        )


def _end(text: str, match: re.Match[str]) -> int:
    end = line_end(text, match.end(), breaks=False)
    if match["sign"] == "/*":
        closing = text.find("*/", match.end(), end)
        return closing + 2 if closing >= 0 else end
    further = _NEXT_COMMENT.search(text, match.end(), end)
    return further.start() if further else match.end() + len(text[match.end() : end].rstrip(" \t"))


def _comments_only(lines: Layout, line: Span, end: int) -> bool:
    """Whether a line begins with a comment, the one at hand or one before it."""
    before = lines.document.text[line.start : end]
    first = line.start + len(before) - len(before.lstrip(" \t"))
    return first == end or (before.lstrip(" \t").startswith(("#", "//")) and lines.is_comment(first))


def _covered(lines: Layout, line: Span, code: int | None) -> Span:
    if code is None:
        statement = lines.lines_at(line.start)
        at_an_end = statement.start == line.start or statement.end == line.end
        return statement if at_an_end else line
    if code >= len(lines.document.text):
        return line
    following = lines.line_at(code)
    statement = lines.lines_at(following.start)
    return Span(line.start, statement.end if statement.start == following.start else following.end)


def without(directive: Directive, name: Span, *again: Span) -> Edit:
    """The edit that takes one of the names (by its places) out of the comment; the last one takes the comment along."""
    spans = [span for _, span in directive.names or ()]
    if len(spans) < 2 + len(again):
        return Edit(_whole(directive), "")
    if again:
        gone = {name.start, *(span.start for span in again)}
        kept = [directive.document.slice(span) for span in spans if span.start not in gone]
        return Edit(Span(spans[0].start, spans[-1].end), ", ".join(kept))
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
