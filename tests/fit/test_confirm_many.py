"""Many findings of one rule over one file are confirmed together."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lintfit.documents import json_reader
from lintfit.documents.model import Document, Edit, FileEdit, Span
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability, Finding, Fix, Severity
from lintfit.fit.confirm import Confirmation
from lintfit.options.model import Options
from lintfit.settings.model import Place
from tests.support import lintfit


def _file(count: int, last: str = "") -> str:
    rows = [f'  "steps_per_print": {5}' for _ in range(count)]
    return '{\n  "zero_optimization": {"stage": 2},\n' + ",\n".join(rows) + last + "\n}\n"


def test_a_thousand_repeated_keys_are_read_again_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = json_reader.read_json
    calls: list[int] = []
    monkeypatch.setattr(json_reader, "read_json", lambda *given, **more: (calls.append(1), read(*given, **more))[1])
    (tmp_path / "ds.json").write_text(_file(1000))
    outcome = lintfit("check", "ds.json", "--isolated", "--output-format", "json", cwd=tmp_path)
    findings = [each for each in json.loads(outcome.out)["findings"] if each["rule"] == "duplicate-key"]
    assert len(findings) == 999 and all(each["fix"]["applicability"] == "safe" for each in findings)
    assert len(calls) < 20


def test_a_comment_among_them_still_makes_its_own_fix_unsafe(tmp_path: Path) -> None:
    text = _file(30).replace('"steps_per_print": 5,', '"steps_per_print": 5,  // as in the paper', 1)
    (tmp_path / "ds.json").write_text(text)
    outcome = lintfit("check", "ds.json", "--isolated", "--output-format", "json", cwd=tmp_path)
    fixes = [each["fix"] for each in json.loads(outcome.out)["findings"] if each["rule"] == "duplicate-key"]
    assert any(fix is None or fix["applicability"] != "safe" for fix in fixes)
    assert any(fix is not None and fix["applicability"] == "safe" for fix in fixes)


def test_those_beside_one_that_does_not_hold_are_read_again_by_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ds.json").write_text(_file(400))
    document = Workspace().read(Path("ds.json"))
    places = [match.start() for match in re.finditer(r'"steps_per_print"', document.text)]
    findings = [_renamed(document, place, "'" if index == 100 else "") for index, place in enumerate(places)]
    held: list[int] = []
    holds = Confirmation._holds
    monkeypatch.setattr(Confirmation, "_holds", lambda *given: (held.append(1), holds(*given))[1])
    confirmed = Confirmation([], Workspace(), Options()).of(findings)
    assert [index for index, finding in enumerate(confirmed.findings) if finding.fix is None] == [100]
    assert len(held) < 60


def _renamed(document: Document, start: int, before: str) -> Finding:
    """A fix that gives a key another name, which is no name where something stands before it."""
    span = Span(start, start + len('"steps_per_print"'))
    edit = FileEdit(document.path, Edit(span, f'{before}"wall_clock_breakdown"'), document)
    fix = Fix("rename it", Applicability.SAFE, (edit,))
    return Finding("a-rule", "LF000", Severity.WARNING, "wrong", Place(document, span), fix=fix)
