"""Which fixes of one pass are made: those that neither overlap nor break anything, in their order.

A file may have thousands. Those that change no setting are made at once and read again once; by halves, down to each
alone, only where they do not hold together. The first that changes settings is made alone, and with it those of other
runs that have nothing to do with it or with each other: what is left is to be judged anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lintfit.documents.lines import line_start, starts_line
from lintfit.documents.model import FileEdit
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Finding
from lintfit.fit.confirm import Confirmation, edits_of, texts_after


class Mending:
    """The fixes that are made so far, and the texts that they leave."""

    def __init__(self, confirmation: Confirmation, workspace: Workspace) -> None:
        self._confirmation, self._workspace = confirmation, workspace
        self._edits: tuple[FileEdit, ...] = ()
        self.texts: dict[Path, str] = {}
        self.fixed: list[Finding] = []

    def make(self, findings: Iterable[Finding]) -> None:
        """Make the fixes of these findings up to the first that changes settings, and of what comes behind it those of
        other runs that are apart from it."""
        groups = iter(_groups(findings))
        for group in groups:
            self._make(group)
            if self.fixed and self.fixed[-1] is group[-1] and _changes(group[-1]):
                apart = [*self._apart(each for group in groups for each in group if _changes(each))]
                self._make(apart, apart=True)
                break

    def _apart(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """One fix of each other run, of those that write to no place that another has: equal edits are one edit, and a
        new file is one place."""
        settled = self.fixed[-1]
        runs = {settled.run}
        taken = {_place(edit) for edit in self._edits}
        for finding in findings:
            places = {_place(edit) for edit in edits_of([finding])}
            if finding.run is not None and finding.run not in runs and taken.isdisjoint(places):
                runs.add(finding.run)
                taken |= places
                yield finding

    @property
    def _settling(self) -> Sequence[Finding]:
        """The fixes so far that change settings."""
        return [finding for finding in self.fixed if _changes(finding)]

    def _make(self, group: Sequence[Finding], apart: bool = False) -> None:
        """Make fixes, by halves where they do not hold together; ``apart``: of a run each, whose settings they change
        beside what was changed so far."""
        if not group:
            return
        edits = (*self._edits, *edits_of(group))
        try:
            after = texts_after(edits, self._workspace)
            holds = (
                self._confirmation.all_apart(self._settling, group, edits, after)
                if apart
                else self._confirmation.all_hold(group, after)
            )
        except ValueError:  # one overlaps another, or a fix of this pass: its turn comes in the next
            holds = False
        if holds:
            self._edits, self.texts = edits, after
            self.fixed.extend(group)
        elif len(group) > 1:
            half = len(group) // 2
            self._make(group[:half], apart)
            self._make(group[half:], apart)


def _place(edit: FileEdit) -> tuple[object, ...]:
    """Where an edit writes: in a new file, or between two characters of one that is there.

    What is written in front of the first word of a line and in front of its blanks is at one place: plans and rules
    begin the same new line at either.
    """
    document, span = edit.document, edit.in_file.span
    if document is None:
        return (edit.path,)
    own = edit.edit.span.start
    if span.start == span.end and starts_line(document.text, own):
        start = span.start - (own - line_start(document.text, own))
        return edit.path, start, start
    return edit.path, span.start, span.end


def _groups(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """The findings in their order: each whose fix changes settings alone, those in between together."""
    together: list[Finding] = []
    for finding in findings:
        if _changes(finding) and together:
            yield together
            together = []
        together.append(finding)
        if _changes(finding):
            yield together
            together = []
    if together:
        yield together


def _changes(finding: Finding) -> bool:
    return finding.fix is not None and bool(finding.fix.changes)
