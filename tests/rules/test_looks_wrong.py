"""What looks wrong and is right stays quiet: see looks_wrong.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.findings.model import Severity
from lintfit.options.model import Options
from tests.rules.pages import PAGES, cases_of

PATTERNS_FILE = Path(__file__).with_name("looks_wrong.md")
HOW_MANY = 52
_HEADING = re.compile(r"^### (?P<number>\d+) (?P<title>.+)$", re.MULTILINE)
_NAMED = re.compile(r"^- (?P<page>[a-z0-9-]+): (?P<case>.+)$", re.MULTILINE)
_FILE = re.compile(r"^```\w+ (?P<name>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Pattern:
    """A pattern with the cases of pages that stay quiet on it, as (page, title), and files of its own."""

    number: int
    title: str
    cases: tuple[tuple[str, str], ...]
    files: dict[str, str]

    def __str__(self) -> str:
        return f"{self.number} {self.title}"


def _patterns() -> list[Pattern]:
    text = PATTERNS_FILE.read_text("utf-8")
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    bodies = [text[heading.end() : end] for heading, end in zip(headings, ends, strict=True)]
    return [
        Pattern(
            int(heading["number"]),
            heading["title"],
            tuple((found["page"], found["case"]) for found in _NAMED.finditer(body)),
            {found["name"]: found["text"] for found in _FILE.finditer(body)},
        )
        for heading, body in zip(headings, bodies, strict=True)
    ]


PATTERNS = _patterns()


def test_every_pattern_is_covered() -> None:
    assert [pattern.number for pattern in PATTERNS] == list(range(1, HOW_MANY + 1))
    assert all(pattern.cases or pattern.files for pattern in PATTERNS)


@pytest.mark.parametrize("pattern", [pattern for pattern in PATTERNS if pattern.cases], ids=str)
def test_the_pages_have_a_quiet_case(pattern: Pattern) -> None:
    for page, title in pattern.cases:
        found = [case for case in cases_of(PAGES / f"{page}.md") if case.title == title]
        assert found, f"{page} has no case {title!r}"
        assert all(expected.severity == "info" for expected in found[0].findings or ()), f"{page}: {title}"


@pytest.mark.parametrize("pattern", [pattern for pattern in PATTERNS if pattern.files], ids=str)
def test_no_rule_reports_more_than_information(
    pattern: Pattern, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in pattern.files.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    result = check([Path()], Options())
    assert not result.errors
    assert [f"{f.rule}: {f.message}" for f in result.findings if f.severity > Severity.INFO] == []
    assert result.files_read
