"""What fixes may reach: files below the roots of what is checked, and none besides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lintfit.documents.model import FileEdit
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Finding, Severity
from lintfit.frozen import replace


def why_not(edits: Iterable[FileEdit], workspace: Workspace) -> str:
    """Why one of some edits is not written; empty where all are."""
    return next(filter(None, (workspace.why_not_changed(edit.path) for edit in edits)), "")


def within_reach(findings: Sequence[Finding], workspace: Workspace) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings, those that only a file outside would mend without their fix; and a line on each such file."""
    reasons = [why_not(finding.fix.edits, workspace) if finding.fix is not None else "" for finding in findings]
    kept = (without_fix(finding) if why else finding for finding, why in zip(findings, reasons, strict=True))
    counts = Counter(filter(None, reasons))
    notes = (f"{why}: {count} {'fix' if count == 1 else 'fixes'} not offered" for why, count in counts.items())
    return tuple(kept), tuple(notes)


def as_of_unused(finding: Finding) -> Finding:
    """A finding of a config that no run uses, or of a run that nothing starts: true, and of no consequence as yet."""
    return replace(without_fix(finding), severity=Severity.INFO)


def without_fix(finding: Finding) -> Finding:
    """The finding with what its fix would do as advice."""
    if finding.fix is None:
        return finding
    return replace(finding, fix=None, help=finding.help or finding.fix.message)
