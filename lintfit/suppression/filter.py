"""From all that the rules say to what is reported: comments, config and baseline take their part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lintfit.checks.helpers.context import UnusedContext
from lintfit.checks.helpers.registry import module_of, run_unused_checks
from lintfit.documents.directives import Directive, directives
from lintfit.documents.model import Document, Span
from lintfit.findings.model import Finding
from lintfit.findings.results import RunResult
from lintfit.frozen import frozen, replace
from lintfit.memory.result import Verdict
from lintfit.options.config import config_for
from lintfit.options.model import Options
from lintfit.options.rules_catalog import rule_names
from lintfit.run.model import Run
from lintfit.suppression.baseline import split
from lintfit.suppression.comments import Silenced, silence


@frozen(eq=False)
class Sifted:
    """What is reported, what a comment ignores, and what the baseline counts; and lines about the baseline."""

    left: tuple[Finding, ...]
    ignored: tuple[Finding, ...] = ()
    baselined: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def sift(
    findings: Sequence[Finding],
    documents: Sequence[Document],
    runs: Sequence[RunResult],
    options: Options,
    others: Sequence[Run] = (),
) -> Sifted:
    """Part the findings of one pass.

    ``others`` are runs that nobody looked at: whether comments and baseline are of use in their files is not known.
    ``findings`` are those of all rules, also of rules that are not selected: only so can a comment that is of no use
    be told from one whose rule is switched off. Raises LintfitError for a baseline that cannot be read.
    """
    silenced = Silenced(tuple(findings), (), frozenset())
    if not options.no_ignores:
        silenced = _with_unused(silence(findings, documents), documents, (*runs, *map(RunResult, others)))
    left = [_weighed(finding, options) for finding in silenced.left if _enabled(finding, options)]
    ignored = tuple(_weighed(finding, options) for finding in silenced.ignored if _enabled(finding, options))
    parts = split(left, [document.path for document in documents], options)
    return Sifted(parts.left, ignored, parts.known, parts.notes if not others else ())


def _with_unused(silenced: Silenced, documents: Sequence[Document], runs: Sequence[RunResult]) -> Silenced:
    """With findings about the comments that silence nothing, which comments may silence in turn."""
    unused = [found for document in documents for found in run_unused_checks(_unused(silenced, document, runs))]
    if not unused:
        return silenced
    more = silence(unused, documents)
    return replace(silenced, left=(*silenced.left, *more.left), ignored=(*silenced.ignored, *more.ignored))


def _unused(silenced: Silenced, document: Document, runs: Sequence[RunResult]) -> Iterator[UnusedContext]:
    known: bool | None = None
    """Whether the runs of the document tell, once that was asked."""
    for directive in directives(document):
        for rule, ((name, span), *again) in _by_rule(directive).items():
            module = module_of(rule)
            if silenced.uses(directive, rule) or hasattr(module, "check_unused"):
                continue
            for_runs = hasattr(module, "check_run")
            if for_runs and known is None:
                known = _judged(document, runs)
            judged = not for_runs or bool(known)
            yield UnusedContext(directive, name, span, tuple(where for _, where in again), rule, for_runs, judged)


def _by_rule(directive: Directive) -> dict[str, list[tuple[str, Span]]]:
    """The rules that a comment silences, each with where it names it."""
    named: dict[str, list[tuple[str, Span]]] = {}
    for name, span in directive.names or () if directive.silences else ():
        rule = rule_names().get(name.casefold())
        if rule is not None:
            named.setdefault(rule, []).append((name, span))
    return named


def _judged(document: Document, runs: Iterable[RunResult]) -> bool:
    """Whether every run of the document is whole and its memory known, so that a rule that is silent has looked."""
    own = [judged for judged in runs if document in judged.run.documents]
    return bool(own) and all(
        judged.run.origin.kind != "config" and judged.verdict is not Verdict.UNKNOWN for judged in own
    )


def _enabled(finding: Finding, options: Options) -> bool:
    path = finding.place.document.path
    return config_for(path, options).enabled(finding.rule, finding.code, path)


def _weighed(finding: Finding, options: Options) -> Finding:
    """The finding with the severity that the config gives its rule."""
    severity = config_for(finding.place.document.path, options).severities.get(finding.rule)
    return finding if severity is None else replace(finding, severity=severity)
