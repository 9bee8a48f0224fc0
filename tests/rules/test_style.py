"""The house's rules of wording, and that the pages follow them; ``test_pages.py`` holds every message to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.model import Document, FileText, Kind, Span
from lintfit.findings.model import Finding, Severity
from lintfit.options.rules_catalog import load_rules
from lintfit.settings.model import Place
from tests.rules.style import forbidden, wrong_with
from tests.rules.test_pages import PAGE_FILES


@pytest.mark.parametrize("page", PAGE_FILES, ids=lambda page: page.stem)
def test_pages(page: Path) -> None:
    rule = load_rules()[page.stem]
    prose = rule.explanation()
    assert list(forbidden(prose)) == []
    assert not rule.summary.endswith(".") and "\n" not in rule.summary
    assert rule.fix in ("none", "safe", "unsafe", "display", "sometimes safe", "sometimes unsafe")


@pytest.mark.parametrize(
    ("message", "help", "problem"),
    [
        ("something is wrong: 3.0 GiB are lost", "do this", ""),
        ("something is wrong: the Trainer stops with ValueError", "do this", ""),
        ("something is wrong", "do this", "neither what it costs nor what breaks"),
        ("something is wrong: 3.0 GiB are lost", "", "nothing says what to do"),
        ('there is no "x", which is ignored: 3 steps; did you mean "y"?', "", ""),
        ("something\nis wrong: 3.0 GiB", "do this", "not one line"),
        ("something  is wrong: 3.0 GiB", "do this", "not one line"),
        ("something is wrong: 3.0 GiB.", "do this", "ends like a sentence"),
        ("something is wrong: 3.0 GiB", "do this.", "ends like a sentence"),
        (f"{'long ' * 50}3.0 GiB", "do this", "characters"),
        ("bf16 is off: it halves memory, 3 GiB", "do this", "halves memory"),
        ("checkpointing is off: it saves 50–80 %", "do this", "50–80 %"),
        ("too large: 3 GiB", "lower the global batch", "lower the global batch"),
        ("too large: 3 GiB", "use fewer processes", "use fewer processes"),
    ],
)
def test_what_is_wrong_with_a_message(message: str, help: str, problem: str) -> None:
    place = Place(Document(FileText(Path("a.py"), "x"), Kind.PYTHON), Span(0, 1))
    finding = Finding("a-rule", "LF001", Severity.WARNING, message, place, help=help)
    problems = list(wrong_with(finding))
    assert len(problems) == bool(problem)
    assert problem in "".join(problems)
