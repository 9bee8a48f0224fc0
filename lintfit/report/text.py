"""The report for people: each run with its memory, its findings in code frames, and its plan; then the summary."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from lintfit.documents.model import Document, Span
from lintfit.findings.model import Applicability, Finding, Related, Severity
from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Verdict
from lintfit.report import Line, View, fixable, shown_path
from lintfit.report.frame import Label, arrow, diff_lines, frame, gutter_width, rule_line
from lintfit.report.runs import plan_lines, run_lines, short_line
from lintfit.report.styled import show, wrapped
from lintfit.report.summary import UNKNOWN_RULE, fixed_lines, judged, statistics_lines, summary_lines


def render(result: CheckResult, view: View) -> str:
    """The report as text, coloured where the view asks for it."""
    lines = report_lines(result, view)
    return show(lines, view)


def report_lines(result: CheckResult, view: View) -> list[Line]:
    """The whole report as styled lines."""
    blocks: list[list[Line]] = []
    folded = _folded(result)
    if view.show_fixes and result.fixed:
        blocks.append(_unstyled(fixed_lines(result.fixed, view)))
    if view.statistics:
        blocks.append(_unstyled(statistics_lines(result, view)))
    else:
        blocks += _runs(result, folded, view)
        known = {run.run.id for run in result.runs}
        blocks += _findings([finding for finding in result.findings if finding.run not in known], None, view)
    blocks.append([*_unstyled(list(result.notes)), *_summary(result, folded, view)])
    return [line for block in blocks if block for line in [*block, []]][:-1]


def _unstyled(lines: Sequence[str]) -> list[Line]:
    return [[(line, "")] for line in lines]


def _folded(result: CheckResult) -> frozenset[str]:
    """Of several runs those of which there is no more to say than why they have no verdict: a line for all of them."""
    if len(result.runs) < 2:
        return frozenset()
    found: dict[str | None, set[str]] = {}
    for finding in result.findings:
        found.setdefault(finding.run, set()).add(finding.rule)
    return frozenset(
        run.run.id
        for run in result.runs
        if run.is_unknown and run.before is None and found.get(run.run.id) == {UNKNOWN_RULE}
    )


def _runs(result: CheckResult, folded: frozenset[str], view: View) -> list[list[Line]]:
    blocks: list[list[Line]] = []
    quiet: list[Line] = []
    for run in result.runs:
        own = [finding for finding in result.findings if finding.run == run.run.id]
        if run.run.id in folded:
            quiet += [short_line(run, view)] if run.estimate is not None else []
            continue
        if not own and run.plan is None and run.before is None and _at_ease(run, alone=len(result.runs) == 1):
            if run.estimate is not None:
                quiet.append(short_line(run, view))
            continue
        blocks.append(run_lines(run, view))
        blocks += _findings(own, run, view)
        blocks.append(plan_lines(run, view))
        if run.alternatives:
            blocks.append(_alternatives(run, view))
    return [*blocks, quiet]


def _alternatives(run: RunResult, view: View) -> list[Line]:
    """All kinds of plans, where they were asked for."""
    from lintfit.report.plans import plan_table

    return [
        [("plans: ", "good"), ("all kinds that fit, best first (`lintfit fit --apply N` writes one)", "")],
        *plan_table(run.alternatives, view),
    ]


def _at_ease(run: RunResult, alone: bool) -> bool:
    """Whether there is no more to say of a run than a line: it fits, or nothing is known and nothing found."""
    return run.estimate is None or (run.verdict is Verdict.FITS and not alone)


def _findings(findings: Sequence[Finding], run: RunResult | None, view: View) -> list[list[Line]]:
    by_path = sorted(findings, key=lambda finding: shown_path(finding.place.document.path))
    blocks = []
    for _, group in groupby(by_path, key=lambda finding: shown_path(finding.place.document.path)):
        shown: Span | None = None
        for finding in sorted(group, key=lambda finding: (finding.place.span, -finding.severity)):
            blocks.append(
                finding_lines(finding, view, run, framed=shown != finding.place.span or bool(finding.related))
            )
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
        lines += frame(document, labels, gutter, view.width)
    others: dict[int, list[Related]] = {}
    for related in finding.related:
        if related.place.document is not document:
            others.setdefault(id(related.place.document), []).append(related)
    for group in others.values():
        first = group[0].place
        lines.append(arrow(first.document, first.span, gutter, ":::"))
        lines += frame(first.document, [_label(related) for related in group], gutter, view.width, context=0)
    return lines


def _label(related: Related) -> Label:
    return Label(related.place.span, related.message, "gutter", "-")


def _advice(finding: Finding, gutter: int, view: View, run: RunResult | None) -> list[Line]:
    fix = finding.fix
    if fix is None:
        return _equals("help", "help", finding.help, gutter, view) if finding.help else []
    if run is not None and run.plan is not None and fix is run.plan.fix:
        return _equals("help", "help", "the plan below makes it fit", gutter, view)
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


def _summary(result: CheckResult, folded: frozenset[str], view: View) -> list[Line]:
    lines = summary_lines(result, view, folded)
    if not lines:
        return []
    worst = max((finding.severity for finding in result.findings), default=None)
    good = worst in (None, Severity.INFO) and not result.errors and judged(result)
    return [[(lines[0], "good" if good else "note")], *_unstyled(lines[1:])]
