"""The rules' metadata as their pages state it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.errors import LintfitError
from lintfit.findings.model import Severity
from lintfit.options.rules_catalog import find, load_rules

PAGE = """\
---
name: forced-float32
code: LF101
summary: the model is cast to float32: before it trains
severity: warning
files: [script, launcher]
fix: sometimes safe
since: 0.1.0
---

## What it does

Prose --- with dashes.

## Cases

### one
"""


def page(folder: Path, name: str = "forced-float32", text: str = PAGE) -> Path:
    file = folder / f"{name}.md"
    file.write_text(text)
    return file


def test_a_page(tmp_path: Path) -> None:
    page(tmp_path)
    rule = load_rules(tmp_path)["forced-float32"]
    assert (rule.code, rule.severity, rule.files) == ("LF101", Severity.WARNING, ("script", "launcher"))
    assert rule.summary == "the model is cast to float32: before it trains"
    assert (rule.module, rule.fixable) == ("forced_float32", True)
    assert rule.text().startswith("## What it does")
    assert rule.explanation() == "## What it does\n\nProse --- with dashes.\n"


def test_rules_come_in_the_order_of_their_codes(tmp_path: Path) -> None:
    page(tmp_path, "b", PAGE.replace("forced-float32", "b").replace("LF101", "LF200"))
    page(tmp_path, "a", PAGE.replace("forced-float32", "a").replace("LF101", "LF300"))
    assert list(load_rules(tmp_path)) == ["b", "a"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("severity: warning", "severity: fatal", "severity must be error, warning or info"),
        ("since: 0.1.0\n", "", "since is missing"),
        ("since: 0.1.0", "since: 0.1.0\nextra: 1", "extra is not a key"),
        ("LF101", "LF1", "code LF and three digits"),
        ("name: forced-float32", "name: other", "name must be forced-float32"),
        ("---\nname", "name", r":1: expected ---"),
        ("code: LF101", "code LF101", r":3: expected key: value"),
        ("since: 0.1.0\n---", "since: 0.1.0", "expected key: value"),
    ],
)
def test_a_wrong_page(tmp_path: Path, old: str, new: str, message: str) -> None:
    page(tmp_path, text=PAGE.replace(old, new))
    with pytest.raises(LintfitError, match=message):
        load_rules(tmp_path)


def test_codes_are_unique(tmp_path: Path) -> None:
    page(tmp_path)
    page(tmp_path, "other", PAGE.replace("name: forced-float32", "name: other"))
    with pytest.raises(LintfitError, match="LF101 is the code of"):
        load_rules(tmp_path)


@pytest.mark.parametrize("name", ["invalid-json", "LF001", "lf001", "Invalid-JSON", "invalid_json"])
def test_find(name: str) -> None:
    assert find(name).code == "LF001"


def test_find_nothing() -> None:
    with pytest.raises(LintfitError, match='did you mean "invalid-json"'):
        find("invalid-jsn")


def test_only_the_head_of_a_page_is_read(tmp_path: Path) -> None:
    page(tmp_path).write_bytes(PAGE.encode() + b"x" * 4096 + b"\xff is not UTF-8")
    rule = load_rules(tmp_path)["forced-float32"]
    with pytest.raises(UnicodeDecodeError):
        rule.text()
