"""Parts findings by the comments that silence them.

A finding is silenced by a comment at its own place or at any place that it points to as related: the line that a
contradiction contradicts is as good as the line that it is reported at. Names and codes of rules count in any case.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from lintfit.documents.directives import Directive, directives, last_of
from lintfit.documents.model import Document, Span
from lintfit.findings.model import Finding
from lintfit.frozen import frozen
from lintfit.options.rules_catalog import rule_names


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
    active: dict[_About, list[Directive]] = {}
    for directive in written:
        for rule in _rules(directive):
            active.setdefault((directive.document, rule), []).append(directive)
    if not active:
        return Silenced(tuple(findings), (), frozenset())
    covered = {about: _Covered.by(there) for about, there in active.items()}
    left: list[Finding] = []
    ignored: list[Finding] = []
    for finding in findings:
        (ignored if any(covered[about].has(span) for about, span in _places(finding, active)) else left).append(finding)
    return Silenced(tuple(left), tuple(ignored), frozenset(_used(active, ignored)))


_About = tuple[Document, str]
"""A document and a rule: what a comment there says of others needs no comparing."""


@frozen(eq=False)
class _Covered:
    """What some comments cover, in the order of where that begins, each with the furthest end so far.

    A file may have a thousand comments and thousands of findings: whether any comment reaches one is looked up.
    """

    begins: tuple[tuple[int, ...], tuple[int, ...]]
    """Where a place has to begin."""
    ends: tuple[tuple[int, ...], tuple[int, ...]]
    """Where it may end as well: of comments behind code."""

    @staticmethod
    def by(there: Sequence[Directive]) -> _Covered:
        """As :meth:`Directive.reaches` has it."""
        return _Covered(_ordered(there), _ordered([directive for directive in there if not directive.alone]))

    def has(self, span: Span) -> bool:
        """Whether any of the comments reaches a place."""
        return _holds(self.begins, span.start) or _holds(self.ends, last_of(span))


def _ordered(there: Iterable[Directive]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    spans = sorted((directive.covers.start, directive.covers.end) for directive in there)
    return tuple(start for start, _ in spans), tuple(accumulate((end for _, end in spans), max))


def _holds(spans: tuple[tuple[int, ...], tuple[int, ...]], at: int) -> bool:
    starts, ends = spans
    index = bisect_right(starts, at) - 1
    return index >= 0 and at <= ends[index]


def _used(
    active: Mapping[_About, Sequence[Directive]], ignored: Iterable[Finding]
) -> Iterator[tuple[Document, Span, str]]:
    """The comments that silence something, each with the rule."""
    places: dict[_About, set[Span]] = {}
    for finding in ignored:
        for about, span in _places(finding, active):
            places.setdefault(about, set()).add(span)
    for (document, rule), spans in places.items():
        starts, lasts = sorted(span.start for span in spans), sorted(map(last_of, spans))
        for directive in active[document, rule]:
            if _lies_in(starts, directive.covers) or (not directive.alone and _lies_in(lasts, directive.covers)):
                yield document, directive.span, rule


def _lies_in(offsets: Sequence[int], covers: Span) -> bool:
    index = bisect_left(offsets, covers.start)
    return index < len(offsets) and offsets[index] <= covers.end


def _places(finding: Finding, active: Mapping[_About, object]) -> Iterator[tuple[_About, Span]]:
    """The places of a finding that lie in files with comments on its rule."""
    for place in (finding.place, *(related.place for related in finding.related)):
        about = place.document, finding.rule
        if about in active:
            yield about, place.span


def _rules(directive: Directive) -> frozenset[str]:
    """The rules that a comment names and that exist."""
    known = rule_names()
    return frozenset(known[name.casefold()] for name, _ in directive.names or () if name.casefold() in known)
