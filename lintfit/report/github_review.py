"""A pull request review with suggestion blocks, as GitHub's ``POST /repos/…/pulls/{number}/reviews`` takes it.

GitHub refuses a review when one of its comments stands on a line that the pull request does not show. Where the
workflow says what the pull request is compared with (``GITHUB_BASE_REF``), git tells which lines those are; findings
elsewhere go into the review's text.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from lintfit.documents.edits import apply
from lintfit.documents.model import Edit, FileEdit, Span
from lintfit.findings.model import Applicability, Finding, Plan
from lintfit.findings.results import CheckResult, RunResult
from lintfit.frozen import frozen, replace
from lintfit.report import View, shown_path
from lintfit.report.bars import gib
from lintfit.report.encoding import dumps
from lintfit.report.markdown import code, cost, fence, place_of, text
from lintfit.report.markdown import render as summary
from lintfit.report.pull_request import Hunks, shown_lines


@frozen
class _Comment:
    """Something to say on the lines ``first`` to ``last`` (1-based) of a file."""

    path: str
    first: int
    last: int
    body: str

    def to_json(self) -> dict[str, Any]:
        lines: dict[str, Any] = {"line": self.last, "side": "RIGHT"}
        if self.first != self.last:
            lines |= {"start_line": self.first, "start_side": "RIGHT"}
        return {"path": self.path, **lines, "body": self.body}


def render(result: CheckResult, view: View) -> str:
    """The review as JSON: the Markdown summary as its text, each finding as a comment with what would mend it."""
    base = os.environ.get("GITHUB_BASE_REF")
    hunks = shown_lines(f"origin/{base}", Path()) if base else None
    plans = {id(run.plan.fix): run for run in result.runs if run.plan is not None}
    comments = [comment for finding in result.findings for comment in _comments(finding, plans.get(id(finding.fix)))]
    inside = [comment for comment in comments if _is_shown(comment, hunks)]
    outside = [comment for comment in comments if not _is_shown(comment, hunks)]
    body = "\n\n".join([summary(result, view).rstrip("\n"), *_elsewhere(outside)]) + "\n"
    return dumps({"event": "COMMENT", "body": body, "comments": [comment.to_json() for comment in inside]})


def _is_shown(comment: _Comment, hunks: Hunks | None) -> bool:
    if hunks is None:
        return True
    return any(first <= comment.first and comment.last <= last for first, last in hunks.get(comment.path, ()))


def _elsewhere(comments: Sequence[_Comment]) -> Iterator[str]:
    if comments:
        yield "<details><summary>On lines that this pull request does not touch</summary>"
        yield from (f"{code(f'{comment.path}:{comment.first}')} {comment.body}" for comment in comments)
        yield "</details>"


def _comments(finding: Finding, planned: RunResult | None) -> Iterator[_Comment]:
    """The finding where it stands; its fix there and, a comment for each, at every other place that it changes.

    ``planned`` is the run whose plan the fix is.
    """
    document = finding.place.document
    path, line = shown_path(document.path), document.position(finding.place.span.start).line
    message = f"**{finding.severity}** {code(finding.rule)}: {text(finding.message)}"
    if planned is not None and planned.plan is not None:
        message += f"\n\n{_outcome(planned, planned.plan)}"
    parts = list(_suggestions(finding))
    if not parts:
        advice = finding.help or (finding.fix.message if finding.fix is not None else "")
        yield _Comment(path, line, line, "\n\n".join([message, *([text(advice)] if advice else [])]))
        return
    here = next((part for part in parts if part.path == path and part.first <= line <= part.last), None)
    if here is None:
        yield _Comment(path, line, line, f"{message}\n\n{_advice(finding, len(parts), 0)}")
    for number, part in enumerate(parts, 1):
        said = message if part is here else f"For {code(finding.rule)} at {code(place_of(finding))}"
        body = f"{said}\n\n{_advice(finding, len(parts), number)}\n\n{part.body}"
        yield _Comment(part.path, part.first, part.last, body)


def _outcome(run: RunResult, plan: Plan) -> str:
    """What the plan comes to: memory before and after, time, and what it changes in the training."""
    after = plan.estimate
    before = f"{gib(run.estimate.peak.likely)} → " if run.estimate is not None else ""
    of = f" of {gib(after.capacity_bytes)}" if after.capacity_bytes is not None else ""
    peak = f"{before}**{gib(after.peak.likely)}**{of} GiB on each GPU"
    effects = "".join(f"\n- {text(effect)}" for effect in plan.effects)
    return f"{text(plan.name or 'the plan')}: {peak}; {cost(plan)}{effects}"


def _advice(finding: Finding, parts: int, number: int) -> str:
    assert finding.fix is not None
    unsafe = f" (unsafe: {text(finding.fix.why_unsafe)})" if finding.fix.applicability is Applicability.UNSAFE else ""
    together = ""
    if number and parts > 1:
        together = f" – part {number} of {parts}: they belong together"
    elif not number:
        together = f" – in {parts} other {'place' if parts == 1 else 'places'}"
    return f"{text(finding.fix.message)}{unsafe}{together}"


def _suggestions(finding: Finding) -> Iterator[_Comment]:
    """Whole lines with what would stand in their place, for every run of lines that the fix changes.

    A new file cannot be suggested: GitHub has no line to put it on; it is shown at the finding instead.
    """
    fix = finding.fix
    if fix is None or fix.applicability is Applicability.DISPLAY:
        return
    by_path: dict[str, list[FileEdit]] = {}
    for edit in fix.edits:
        by_path.setdefault(shown_path(edit.path), []).append(edit)
    for path, edits in by_path.items():
        document = edits[0].document
        if document is None:
            place = finding.place
            line = place.document.position(place.span.start).line
            new = f"new file {code(path)}:\n\n{fence(edits[0].edit.text, Path(path).suffix.removeprefix('.'))}"
            yield _Comment(shown_path(place.document.path), line, line, new)
        else:
            yield from _changed_lines(path, document.whole, [edit.in_file for edit in edits])


def _changed_lines(path: str, before: str, edits: Sequence[Edit]) -> Iterator[_Comment]:
    for above, old, new in _blocks(before, edits):
        if max(len(old), len(new)) > _MOST_LINES:
            what = f"{len(old):,} lines change here: `lintfit check --fix` makes the change"
            yield _Comment(path, above + 1, above + len(old), what)
        else:
            yield from _of_block(path, above, old, new)


_MOST_LINES = 1_000
"""Lines of one suggestion, which nobody reads: GitHub takes 65,536 characters of a comment, and what is the same of two
texts of so many lines is found in time by their square."""


def _blocks(before: str, edits: Sequence[Edit]) -> Iterator[tuple[int, list[str], list[str]]]:
    """The lines that edits touch with the line above, as they are and as they become, and how many lines lie above
    them: to hold a whole file against itself takes time by the square of its lines."""
    starts = [0, *(found.end() for found in re.finditer("\n", before))]
    blocks: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        first = max(0, bisect_right(starts, edit.span.start) - 2)
        last = bisect_right(starts, edit.span.end)
        if blocks and first < blocks[-1][1]:
            begin, end, own = blocks.pop()
            blocks.append((begin, max(end, last), [*own, edit]))
        else:
            blocks.append((first, last, [edit]))
    for first, last, own in blocks:
        start = starts[first]
        text = before[start : starts[last] - 1 if last < len(starts) else len(before)]
        moved = [replace(each, span=Span(each.span.start - start, each.span.end - start)) for each in own]
        yield first, text.split("\n"), apply(text, moved).split("\n")


def _of_block(path: str, above: int, old: list[str], new: list[str]) -> Iterator[_Comment]:
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if first == last:
            # A suggestion replaces lines; one that adds some repeats the line that it comes after, or before.
            first, start = (first - 1, start - 1) if first else (first, start)
            last, end = (last, end) if last > first else (last + 1, end + 1)
        lines = [line.removesuffix("\r") for line in new[start:end]]
        yield _Comment(
            path, above + first + 1, above + last, fence("".join(f"{line}\n" for line in lines), "suggestion")
        )
