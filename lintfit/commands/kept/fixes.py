"""Fixes that were confirmed by an earlier check: each file's by each rule are a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lintfit.commands.kept.store import Store
from lintfit.findings.model import Finding
from lintfit.findings.results import RunResult

if TYPE_CHECKING:
    from lintfit.fit.confirm import Confirmation


def confirmed_by_parts(
    findings: Sequence[Finding], runs: Sequence[RunResult], confirmation: Confirmation, store: Store
) -> tuple[Finding, ...]:
    """The findings as :meth:`Confirmation.of` gives them, which confirms those of one rule over one file and run
    together, and each of the others alone."""
    plans = {id(run.plan.fix) for run in runs if run.plan is not None}
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, finding in enumerate(findings):
        if finding.fix is not None and finding.fix.edits and id(finding.fix) not in plans:
            groups.setdefault((finding.rule, finding.place.document.path, finding.run), []).append(index)
    after = [*findings]
    ids = [run.run.id for run in runs]
    for group in groups.values():
        own = [findings[index] for index in group]
        for index, finding in zip(group, _confirmed(own, runs, ids, confirmation, store), strict=True):
            after[index] = finding
    return tuple(after)


def _confirmed(
    own: Sequence[Finding], runs: Sequence[RunResult], ids: Sequence[str], confirmation: Confirmation, store: Store
) -> Sequence[Finding]:
    from lintfit.fit.confirm import touched

    words = store.in_words(own)
    if words is None:
        return confirmation.of(own).findings
    edits = [edit for finding in own if finding.fix is not None for edit in finding.fix.edits]
    changed = {edit.path: "" for edit in edits}
    about = {finding.run for finding in own}
    part_of = [each.run for each in runs if touched(each.run, changed) or each.run.id in about]
    documents = [*(edit.document for edit in edits if edit.document is not None), *(f.place.document for f in own)]
    return store.findings(("fixes", words, *ids), part_of, documents, lambda: confirmation.of(own).findings)
