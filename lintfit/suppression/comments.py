"""Parts findings by the comments that silence them.

A finding is silenced by a comment at its own place or at any place that it points to as related: the line that a
contradiction contradicts is as good as the line that it is reported at. Names and codes of rules count in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lintfit.documents.directives import Directive, directives
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
    active = [(directive, _rules(directive)) for directive in written]
    left: list[Finding] = []
    ignored: list[Finding] = []
    used: set[tuple[Document, Span, str]] = set()
    for finding in findings:
        by = [directive for directive, rules in active if finding.rule in rules and _speaks_of(directive, finding)]
        used.update((directive.document, directive.span, finding.rule) for directive in by)
        (ignored if by else left).append(finding)
    return Silenced(tuple(left), tuple(ignored), frozenset(used))


def _rules(directive: Directive) -> frozenset[str]:
    """The rules that a comment names and that exist."""
    known = rule_names()
    return frozenset(known[name.casefold()] for name, _ in directive.names or () if name.casefold() in known)


def _speaks_of(directive: Directive, finding: Finding) -> bool:
    """Whether a place of the finding lies in what a comment covers."""
    places = (finding.place, *(related.place for related in finding.related))
    return any(place.document is directive.document and directive.reaches(place.span) for place in places)
