"""Reads the executable cases of the rules' pages."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

PAGES = Path(__file__).parents[2] / "rules"
CHECKS = Path(__file__).parents[2] / "lintfit" / "checks"

_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^### +(?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Expected:
    """One line of a ``findings`` block: where, how bad, and the beginning or a part of the message."""

    path: str
    line: int
    severity: str
    rule: str
    message: str

    @classmethod
    def parse(cls, text: str) -> Expected:
        found = re.fullmatch(r"(.+?):(\d+) (error|warning|info) ([a-z0-9-]+): (.*)", text)
        if found is None:
            raise ValueError(f"not a finding: {text!r}")
        return cls(found[1], int(found[2]), found[3], found[4], found[5])


@dataclass
class Case:
    """One third-level heading below *Cases*."""

    rule: str
    title: str
    files: dict[str, str] = field(default_factory=dict)
    findings: list[Expected] | None = None
    fixed: dict[str, str] = field(default_factory=dict)
    unsafe_fixed: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.rule}: {self.title}"


def cases_of(page: Path) -> list[Case]:
    """Every case of a page. Raises ValueError for a block that says nothing the harness knows."""
    _, _, below = page.read_text("utf-8").partition("\n## Cases\n")
    headings = list(_HEADING.finditer(below))
    ends = [heading.start() for heading in headings[1:]] + [len(below)]
    return [
        _case(page.stem, heading["title"].strip(), below[heading.end() : end])
        for heading, end in zip(headings, ends, strict=True)
    ]


def _case(rule: str, title: str, text: str) -> Case:
    case = Case(rule, title)
    for block in _FENCE.finditer(text):
        words, body = block["info"].split(), block["body"]
        if words == ["findings"]:
            case.findings = [Expected.parse(line) for line in body.splitlines() if line.strip()]
        elif words[-2:-1] == ["fixed"]:
            target = case.unsafe_fixed if "unsafe" in words else case.fixed
            target[words[-1]] = body
        elif len(words) == 2:
            case.files[words[1]] = body
        else:
            raise ValueError(f"{rule}: {title}: a block needs a file name: {block['info']!r}")
    return case
