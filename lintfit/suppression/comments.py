"""Reads the comments that silence findings, and parts findings by them.

``# lintfit: ignore[rule, LF101] reason`` at the end of a line covers that line, and the whole statement where it is the
statement's first or last line. On a line of its own it covers the next line of code, and the whole statement (Python)
or command (shell) that begins there; of a compound statement only its header. ``# lintfit: file-ignore[rule]`` covers
the file. JSON also knows ``//`` and ``/* */``.

A finding is silenced by a comment at its own place or at any place that it points to as related: the line that a
contradiction contradicts is as good as the line that it is reported at. Names and codes of rules count in any case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from lintfit.documents.lines import line_end
from lintfit.documents.model import Document, Kind, Span
from lintfit.findings.model import Finding
from lintfit.frozen import frozen
from lintfit.suppression.comment_layout import Layout, layout

IGNORE, FILE_IGNORE = "ignore", "file-ignore"

_MARK = "lintfit:"
_DIRECTIVE = re.compile(
    r"(?P<sign>\#|//|/\*)[ \t]*lintfit:[ \t]*(?P<word>[A-Za-z][\w-]*)(?:[ \t]*\[(?P<rules>[^\]\r\n]*)\])?"
)
_NAME = re.compile(r"[^\s,]+")
_NEXT_COMMENT = re.compile(r"[ \t]+#[ \t]*(?=[A-Za-z])")
_CODE_LINE = re.compile(r"^[ \t]*(?!#|/[/*]|[ \t\r\n]|\Z)", re.MULTILINE)


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

    def rules(self) -> frozenset[str]:
        """The rules that it names and that exist."""
        known = rule_names()
        return frozenset(known[name.casefold()] for name, _ in self.names or () if name.casefold() in known)

    def speaks_of(self, finding: Finding) -> bool:
        """Whether a place of the finding lies in what this comment covers."""
        places = (finding.place, *(related.place for related in finding.related))
        return any(place.document is self.document and self.reaches(place.span) for place in places)

    def reaches(self, span: Span) -> bool:
        """Whether a place begins on the lines that this covers, or (a comment behind code) ends there."""
        last = max(span.start, span.end - 1)
        return any(self.covers.start <= at <= self.covers.end for at in (span.start, *(() if self.alone else (last,))))


@frozen(eq=False)
class Silenced:
    """The findings that are left, those that a comment silences, and by which comment's which rule."""

    left: tuple[Finding, ...]
    ignored: tuple[Finding, ...]
    used: frozenset[tuple[Document, Span, str]]

    def uses(self, directive: Directive, rule: str) -> bool:
        """Whether the comment has silenced a finding of this rule."""
        return (directive.document, directive.span, rule) in self.used


def silence(findings: Sequence[Finding], documents: Iterable[Document]) -> Silenced:
    """Part the findings by the comments of these documents."""
    written = [directive for document in documents for directive in directives(document) if directive.silences]
    active = [(directive, directive.rules()) for directive in written]
    left: list[Finding] = []
    ignored: list[Finding] = []
    used: set[tuple[Document, Span, str]] = set()
    for finding in findings:
        by = [directive for directive, rules in active if finding.rule in rules and directive.speaks_of(finding)]
        used.update((directive.document, directive.span, finding.rule) for directive in by)
        (ignored if by else left).append(finding)
    return Silenced(tuple(left), tuple(ignored), frozenset(used))


@cache
def rule_names() -> Mapping[str, str]:
    """The rule by its name and by its code, both in lower case."""
    from lintfit.options.rules_catalog import load_rules

    rules = load_rules().values()
    return {text: rule.name for rule in rules for text in (rule.name, rule.code.casefold())}


def directives(document: Document) -> tuple[Directive, ...]:
    """Every ``lintfit:`` comment of a document, in order. Where there is none, that is one search and no more."""
    return tuple(_read(document)) if _MARK in document.text else ()


def _read(document: Document) -> Iterator[Directive]:
    text = document.text
    lines: Layout | None = None
    for match in _DIRECTIVE.finditer(text):
        if match["sign"] != "#" and document.kind is not Kind.JSON:
            continue
        lines = lines or layout(document)
        if not lines.is_comment(match.start()):
            continue
        line = lines.line_at(match.start())
        end = _end(text, match)
        alone = _comments_only(lines, line, match.start()) and not _code_behind(text, match, end, line)
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
            covers=Span(0, len(text)) if whole else _covered(lines, line, alone),
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


def _code_behind(text: str, match: re.Match[str], end: int, line: Span) -> bool:
    return match["sign"] == "/*" and bool(text[end : line.end].strip(" \t"))


def _covered(lines: Layout, line: Span, alone: bool) -> Span:
    if not alone:
        statement = lines.lines_at(line.start)
        at_an_end = statement.start == line.start or statement.end == line.end
        return statement if at_an_end else line
    text = lines.document.text
    code = _CODE_LINE.search(text, line_end(text, line.end))
    if code is None:
        return line
    following = lines.line_at(code.start())
    statement = lines.lines_at(following.start)
    return Span(line.start, statement.end if statement.start == following.start else following.end)
