"""Fixes that change no setting are made together, by halves where they do not hold, and in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from lintfit.documents.model import DataDocument, Edit, FileEdit, Span
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability, Finding, Fix, Severity
from lintfit.fit.confirm import Confirmation
from lintfit.fit.mending import Mending
from lintfit.frozen import replace
from lintfit.settings.model import Place
from tests.support import lintfit


class _Holding:
    """A confirmation for which fixes hold together where none of them is bad."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad
        self.asked: list[int] = []

    def all_hold(self, findings: Sequence[Finding], texts: Mapping[Path, str]) -> bool:
        self.asked.append(len(findings))
        return not any(finding.place.span.start in self.bad for finding in findings)

    def all_apart(self, made: Sequence[Finding], findings: Sequence[Finding], *_: object) -> bool:
        return self.all_hold((*made, *findings), {})


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "ds.json").write_text("[" + "1," * 100 + "1]")
    return Workspace(tmp_path)


def _finding(workspace: Workspace, start: int, end: int = 0, **changes: object) -> Finding:
    document = workspace.read(Path("ds.json"))
    assert isinstance(document, DataDocument)
    span = Span(start, end or start + 1)
    fix = Fix("mend it", Applicability.SAFE, (FileEdit(document.path, Edit(span, "2"), document),), changes)
    return Finding("a-rule", "LF000", Severity.WARNING, "wrong", Place(document, span), fix=fix)


def _made(workspace: Workspace, findings: Sequence[Finding], bad: set[int]) -> tuple[list[int], list[int]]:
    """Where the fixes stand that are made, and how many were asked about each time."""
    holding = _Holding(bad)
    mending = Mending(cast("Confirmation", holding), workspace)
    mending.make(findings)
    made = [finding.place.span.start for finding in mending.fixed]
    text = mending.texts.get(Path("ds.json"), "")
    assert [index for index, letter in enumerate(text) if letter == "2"] == sorted(made)
    return made, holding.asked


def test_all_that_hold_are_asked_about_once(workspace: Workspace) -> None:
    findings = [_finding(workspace, start) for start in range(1, 101, 2)]
    assert _made(workspace, findings, set()) == ([*range(1, 101, 2)], [50])


def test_one_that_does_not_hold_costs_a_look_for_each_half(workspace: Workspace) -> None:
    findings = [_finding(workspace, start) for start in range(1, 65, 2)]
    made, asked = _made(workspace, findings, {33})
    assert made == [start for start in range(1, 65, 2) if start != 33]
    assert asked == [32, 16, 16, 8, 4, 2, 1, 1, 2, 4, 8]


def test_of_two_that_overlap_the_first_is_made(workspace: Workspace) -> None:
    findings = [_finding(workspace, 1), _finding(workspace, 3), _finding(workspace, 3, 6), _finding(workspace, 9)]
    assert _made(workspace, findings, set())[0] == [1, 3, 9]


def test_nothing_is_made_after_a_fix_that_changes_a_setting(workspace: Workspace) -> None:
    findings = [_finding(workspace, 1), _finding(workspace, 3, zero_stage=2), _finding(workspace, 5)]
    assert _made(workspace, findings, set()) == ([1, 3], [1, 1])


def test_a_refused_fix_that_would_change_a_setting_is_passed_over(workspace: Workspace) -> None:
    findings = [_finding(workspace, 1), _finding(workspace, 3, zero_stage=2), _finding(workspace, 5)]
    assert _made(workspace, findings, {3})[0] == [1, 5]


def _of_run(workspace: Workspace, run: str, start: int, end: int = 0) -> Finding:
    return replace(_finding(workspace, start, end, zero_stage=2), run=run)


def test_after_it_those_of_other_runs_are_made_together(workspace: Workspace) -> None:
    findings = [_of_run(workspace, f"r{start}.sh", start) for start in range(1, 17, 2)]
    assert _made(workspace, findings, set()) == ([*range(1, 17, 2)], [1, 8])
    made, asked = _made(workspace, findings, {5})
    assert made == [1, 3, 7, 9, 11, 13, 15]
    assert asked == [1, 8, 4, 2, 4, 3, 3, 7]


def test_a_second_fix_of_a_run_or_of_a_place_waits_for_the_next_pass(workspace: Workspace) -> None:
    first, same = _of_run(workspace, "a.sh", 1), _of_run(workspace, "b.sh", 1)
    findings = [first, _of_run(workspace, "a.sh", 3), same, _finding(workspace, 5), _of_run(workspace, "b.sh", 7)]
    assert _made(workspace, findings, set()) == ([1, 7], [1, 2])


def test_a_line_that_begins_in_front_of_its_blanks_or_behind_them_is_one_place(tmp_path: Path) -> None:
    """A plan and a rule open the input of adapters by the same line, written at either."""
    (tmp_path / "a.py").write_text("if x:\n    train()\n")
    document = Workspace(tmp_path).read(Path("a.py"))
    findings = []
    for run, start, text in (("a.sh", 0, "z = 1\n"), ("b.sh", 6, "    y = 1\n"), ("c.sh", 10, "y = 1\n    ")):
        edit = FileEdit(document.path, Edit(Span(start, start), text), document)
        fix = Fix("mend it", Applicability.SAFE, (edit,), {"engine": run})
        place = Place(document, Span(start, start + 1))
        findings.append(Finding("a-rule", "LF000", Severity.WARNING, "wrong", place, fix=fix, run=run))
    mending = Mending(cast("Confirmation", _Holding(set())), Workspace(tmp_path))
    mending.make(findings)
    assert mending.texts[Path("a.py")] == "z = 1\nif x:\n    y = 1\n    train()\n"


def test_a_new_file_is_made_by_one_fix(workspace: Workspace) -> None:
    new = FileEdit(Path("ds-2.json"), Edit(Span(0, 0), "{}"))
    findings = []
    for run, start in (("a.sh", 1), ("b.sh", 3)):
        finding = _of_run(workspace, run, start)
        assert finding.fix is not None
        findings.append(replace(finding, fix=replace(finding.fix, edits=(*finding.fix.edits, new))))
    assert _made(workspace, findings, set())[0] == [1]


def test_a_thousand_repeated_keys_are_deleted(tmp_path: Path) -> None:
    rows = ",\n".join('  "steps_per_print": 5' for _ in range(1000))
    (tmp_path / "ds.json").write_text(f'{{\n  "zero_optimization": {{"stage": 2}},\n{rows}\n}}\n')
    lintfit("check", "ds.json", "--isolated", "--fix", cwd=tmp_path)
    assert (tmp_path / "ds.json").read_text().count("steps_per_print") == 1
