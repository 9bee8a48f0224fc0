"""Which fixes of one pass are made: those that neither overlap nor break anything, in their order.

A file may have thousands. Those that change no setting are made at once and read again once; by halves, down to each
alone, only where they do not hold together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

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
        """Make the fixes of these findings, up to the first that changes settings: the rest is to be judged anew."""
        for group in _groups(findings):
            self._make(group)
            if self.fixed and self.fixed[-1] is group[-1] and _changes(group[-1]):
                break

    def _make(self, group: Sequence[Finding]) -> None:
        edits = (*self._edits, *edits_of(group))
        try:
            after = texts_after(edits, self._workspace)
            holds = self._confirmation.all_hold(group, after)
        except ValueError:  # one overlaps another, or a fix of this pass: its turn comes in the next
            holds = False
        if holds:
            self._edits, self.texts = edits, after
            self.fixed.extend(group)
        elif len(group) > 1:
            half = len(group) // 2
            self._make(group[:half])
            self._make(group[half:])


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
