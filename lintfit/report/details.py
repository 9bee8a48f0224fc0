"""Findings in full, as ``--verbose`` shows them: the code that they stand in, what helps, and the fix as a diff."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from lintfit.documents.model import DataDocument, Document, Span
from lintfit.findings.model import Applicability, Finding, Related
from lintfit.findings.results import RunResult
from lintfit.report import Line, View, fixable, shown_path
from lintfit.report.frame import Label, arrow, diff_lines, frame, gutter_width, rule_line
from lintfit.report.styled import wrapped


def assumption_lines(result: RunResult, view: View) -> list[Line]:
    """What the estimate of a run assumes, and what it does not model."""
    estimate = result.estimate
    if estimate is None:
        return []
    said = [("  assumed: ", line) for line in estimate.assumptions]
    said += [("  not modelled: ", line) for line in estimate.not_modelled]
    return [line for word, text in said for line in wrapped([(word, "dim")], text, view.width, 4)]


def detailed(findings: Sequence[Finding], run: RunResult | None, view: View) -> list[list[Line]]:
    """Each finding in full, file by file; the code of one place is shown once."""
    by_path = sorted(findings, key=lambda finding: shown_path(finding.place.document.path))
    blocks = []
    for _, group in groupby(by_path, key=lambda finding: shown_path(finding.place.document.path)):
        shown: Span | None = None
        for finding in sorted(group, key=lambda finding: (finding.place.span, -finding.severity)):
            framed = shown != finding.place.span or bool(finding.related)
            blocks.append(finding_lines(finding, view, run, framed=framed))
            shown = finding.place.span
    return blocks


def finding_lines(finding: Finding, view: View, run: RunResult | None = None, framed: bool = True) -> list[Line]:
    """One finding: header, places in code frames, help, the fix as a small diff, and a note where it is unsafe.

    ``framed`` False shows the place without its code: the finding before it has just shown the same.
    """
    severity = str(finding.severity)
    mark = " [*]" if fixable(finding, view.unsafe_fixes) else ""
    head: Line = [(finding.rule, "rule"), (f" {finding.code} ", ""), (severity, severity), (f"{mark}: ", "help")]
    lines = wrapped(head, finding.message, view.width, 4)
    gutter = gutter_width(_places(finding))
    frames = _frames(finding, gutter, view) if framed else [arrow(finding.place.document, finding.place.span, gutter)]
    advice = _advice(finding, gutter, view, run)
    if not advice and frames[-1] == rule_line(gutter):
        frames.pop()
    return [*lines, *frames, *advice]


def _places(finding: Finding) -> list[tuple[Document, Span]]:
    places = [(finding.place.document, finding.place.span)]
    places += [(related.place.document, related.place.span) for related in finding.related]
    edits = finding.fix.edits if finding.fix else ()
    return [*places, *((edit.document, edit.edit.span) for edit in edits if edit.document is not None)]


def _frames(finding: Finding, gutter: int, view: View) -> list[Line]:
    document = finding.place.document
    severity = str(finding.severity)
    here = [related for related in finding.related if related.place.document is document]
    labels = [Label(finding.place.span, "", severity, "^"), *map(_label, here)]
    lines = [arrow(document, finding.place.span, gutter)]
    if document.text:
        lines += frame(document, labels, gutter, view.width, alone=_is_others(document))
    others: dict[int, list[Related]] = {}
    for related in finding.related:
        if related.place.document is not document:
            others.setdefault(id(related.place.document), []).append(related)
    for group in others.values():
        first = group[0].place
        lines.append(arrow(first.document, first.span, gutter, ":::"))
        named = [_label(related) for related in group]
        lines += frame(first.document, named, gutter, view.width, context=0, alone=_is_others(first.document))
    return lines


def _is_others(document: Document) -> bool:
    """Whether a file is no config that lintfit checks, but data that a script reads: nobody has asked to see more of it
    than the value that counts."""
    if not isinstance(document, DataDocument):
        return False
    from lintfit.sources import detect
    from lintfit.sources.recipes.forms import front_end_of

    return detect.dialect(document) is None and front_end_of(document.text, document.kind) is None


def _label(related: Related) -> Label:
    return Label(related.place.span, related.message, "gutter", "-")


def _advice(finding: Finding, gutter: int, view: View, run: RunResult | None) -> list[Line]:
    fix = finding.fix
    if fix is None:
        return _equals("help", "help", finding.help, gutter, view) if finding.help else []
    if run is not None and run.plan is not None and fix is run.plan.fix:
        return _equals("help", "help", "the plan makes it fit", gutter, view)
    lines = _equals("help", "help", fix.message, gutter, view)
    lines += diff_lines(fix.edits, gutter, view.width, finding.place.document)
    if fix.applicability is Applicability.UNSAFE:
        note = f"this fix is unsafe: {fix.why_unsafe}; `--fix --unsafe-fixes` applies it"
        lines += _equals("note", "note", note, gutter, view)
    elif fix.applicability is Applicability.DISPLAY and fix.edits:
        why = f"{fix.caution}; " if fix.caution else ""
        note = f"this change is only shown: {why}check it and carry it out by hand"
        lines += _equals("note", "note", note, gutter, view)
    return lines


def _equals(word: str, style: str, text: str, gutter: int, view: View) -> list[Line]:
    first: Line = [(" " * (gutter + 1) + "= ", "gutter"), (f"{word}: ", style)]
    return wrapped(first, text, view.width, gutter + 3)
