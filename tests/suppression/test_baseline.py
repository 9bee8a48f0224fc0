"""Known findings, counted by file and rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import Outcome, lintfit

ONE = '{\n  "zero_optimization": {"stage": 2},\n  "stage": 1\n}\n'
TWO = ONE.replace('"stage": 1', '"stage": 1,\n  "hidden": 2')


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/ds.json").write_text(ONE)


def check(*arguments: str) -> Outcome:
    return lintfit("check", *arguments, "--output-format", "concise", cwd=Path.cwd())


def counts(file: str = "known.json") -> Any:
    return json.loads(Path(file).read_text())


def test_known_findings_are_not_reported() -> None:
    assert check("conf").status == 1
    written = check("conf", "--write-baseline", "known.json")
    assert (written.status, counts()) == (
        0,
        {"lintfit_baseline": 1, "findings": {"conf/ds.json": {"unknown-top-level-key": 1}}},
    )
    assert "1 finding of 1 file counted in known.json" in written.out
    outcome = check("conf", "--baseline", "known.json")
    assert outcome.status == 0
    assert outcome.out == ("All other checks passed.\nNot shown: 1 warning in the baseline (unknown-top-level-key).\n")


def test_what_is_beyond_the_count_is_reported() -> None:
    check("conf", "--write-baseline", "known.json")
    Path("conf/ds.json").write_text(TWO)
    outcome = check("conf", "--baseline", "known.json")
    assert outcome.status == 1
    assert outcome.out.startswith("conf/ds.json:4:3: warning unknown-top-level-key")
    assert "conf/ds.json:3:" not in outcome.out


def test_another_rule_or_file_is_reported() -> None:
    check("conf", "--write-baseline", "known.json")
    Path("conf/ds.json").write_text(ONE.replace('"stage": 1', '"zero_optimization": {"stage": 1}'))
    Path("conf/other.json").write_text(ONE)
    out = check("conf", "--baseline", "known.json").out
    assert "duplicate-key" in out
    assert "conf/other.json:3:3: warning unknown-top-level-key" in out


def test_stale_counts_are_told_of_and_lowered() -> None:
    Path("conf/ds.json").write_text(TWO)
    check("conf", "--write-baseline", "known.json")
    Path("conf/ds.json").write_text(ONE)
    outcome = check("conf", "--baseline", "known.json")
    assert outcome.status == 0
    assert outcome.out.startswith(
        "known.json counts more than there is (conf/ds.json: unknown-top-level-key); "
        "--write-baseline known.json lowers it"
    )
    check("conf", "--write-baseline", "known.json")
    assert counts()["findings"] == {"conf/ds.json": {"unknown-top-level-key": 1}}
    assert "counts more" not in check("conf", "--baseline", "known.json").out


def test_what_was_not_looked_at_keeps_its_counts() -> None:
    Path("conf/other.json").write_text(TWO)
    check("conf", "--write-baseline", "known.json")
    Path("conf/ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    check("conf/ds.json", "--write-baseline", "known.json")
    assert counts()["findings"] == {"conf/other.json": {"unknown-top-level-key": 2}}
    assert "counts more" not in check("conf/ds.json", "--baseline", "known.json").out
    Path("conf/other.json").unlink()
    assert "conf/other.json" in check("conf/ds.json", "--baseline", "known.json").out
    check("conf/ds.json", "--write-baseline", "known.json")
    assert counts()["findings"] == {}


def test_the_config_names_it_relative_to_itself() -> None:
    check("conf", "--write-baseline", "conf/known.json")
    assert counts("conf/known.json")["findings"] == {"ds.json": {"unknown-top-level-key": 1}}
    Path("conf/lintfit.toml").write_text('baseline = "known.json"\n')
    assert check("conf").status == 0
    assert check("conf", "--isolated").status == 1
    # A new baseline counts everything, also what the old one holds.
    check("conf", "--write-baseline", "conf/known.json")
    assert counts("conf/known.json")["findings"] == {"ds.json": {"unknown-top-level-key": 1}}


def test_what_is_known_is_not_fixed() -> None:
    text = ONE.replace('"stage": 1', '"gradient_clipp1ng": 1.0')
    Path("conf/ds.json").write_text(text)
    check("conf", "--write-baseline", "known.json")
    outcome = check("conf", "--baseline", "known.json", "--fix", "--unsafe-fixes")
    assert "Fixed" not in outcome.out
    assert Path("conf/ds.json").read_text() == text
    assert "Fixed 1 finding" in check("conf", "--fix", "--unsafe-fixes").out


def test_information_is_not_counted() -> None:
    check("conf", "--write-baseline", "known.json", "--fail-on", "error")
    assert counts()["findings"] == {}


def test_the_file_is_the_same_every_time() -> None:
    Path("conf/a.json").write_text(TWO)
    check("conf", "--write-baseline", "known.json")
    first = Path("known.json").read_bytes()
    check("conf/ds.json", "conf/a.json", "--write-baseline", "known.json")
    assert Path("known.json").read_bytes() == first
    assert list(counts()["findings"]) == ["conf/a.json", "conf/ds.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            None,
            "known.json: the baseline cannot be read: no such file or directory; --write-baseline known.json makes it",
        ),
        ("{", "known.json: no baseline: not JSON: "),
        ("[[]" + ",[]" * 700_000 + "]", "known.json: no baseline: more than 600000 files and rules"),
        ("[]", "known.json: no baseline of this version of lintfit"),
        ('{"lintfit_baseline": 2, "findings": {}}', "known.json: no baseline of this version of lintfit"),
        ('{"lintfit_baseline": 1, "findings": {"a": {"b": -1}}}', "known.json: no baseline of this version of lintfit"),
        ('{"lintfit_baseline": 1, "findings": {"a": {"b": true}}}', "known.json: no baseline of this version"),
    ],
)
def test_a_wrong_baseline_gets_one_line(content: str | None, message: str) -> None:
    if content is not None:
        Path("known.json").write_text(content)
    outcome = check("conf", "--baseline", "known.json")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"lintfit: {message}")
    assert outcome.err.count("\n") == 1


def test_a_place_that_cannot_be_written() -> None:
    outcome = check("conf", "--write-baseline", "missing/known.json")
    assert outcome.status == 2
    assert "missing/known.json: cannot be written: no such file or directory" in outcome.err
    assert check("conf", "--write-baseline", "known.json", "--diff").status == 2
