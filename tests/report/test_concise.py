"""One line per finding, and the closing lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lintfit.findings.model import Applicability, Finding, Severity
from lintfit.findings.results import CheckResult
from lintfit.report import View, render
from tests.report.samples import Story


def findings(*counts: int) -> tuple[Finding, ...]:
    """So many errors, warnings and infos without fixes."""
    base = replace(Story().remark(), fix=None)
    severities = (Severity.ERROR, Severity.WARNING, Severity.INFO)
    return tuple(replace(base, severity=s) for s, count in zip(severities, counts, strict=True) for _ in range(count))


def test_lines() -> None:
    assert render("concise", Story().result(), View()) == (
        'ds.json:4:5: warning unknown-key (LF801) [*] DeepSpeed does not know "overlap_comm" here\n'
        "run.sh:1:27: info launch-remark (LF999) eight processes\n"
        "run.sh:1:1: error does-not-fit (LF901) [*] 110.6 GiB on a GPU with 23.7 GiB\n"
        "train.py:9:10: error forced-float32 (LF101) model.float() makes all 7.0 B parameters fp32: "
        "26.1 GiB of weights a GPU instead of 13.0 GiB\n"
        "Found 2 errors, 1 warning (1 info).\n"
        "[*] 2 fixable with `--fix` (1 more with `--fix --unsafe-fixes`).\n"
    )


def test_unsafe_fixes_count_when_they_are_asked_for() -> None:
    text = render("concise", Story().result(), View(unsafe_fixes=True))
    assert "error forced-float32 (LF101) [*] model.float()" in text
    assert text.endswith("[*] 3 fixable with `--fix --unsafe-fixes`.\n")


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ((0, 0, 0), "All checks passed."),
        ((0, 0, 2), "All checks passed (2 info)."),
        ((1, 0, 0), "Found 1 error."),
        ((0, 1, 0), "Found 1 warning."),
        ((3, 1, 2), "Found 3 errors, 1 warning (2 info)."),
    ],
)
def test_summary(counts: tuple[int, int, int], line: str) -> None:
    assert render("concise", CheckResult(findings=findings(*counts), configs=1), View()).splitlines()[-1] == line


def test_summary_after_fixing() -> None:
    fixed = (Story().typo(), Story().upcast())
    text = render("concise", CheckResult(findings=findings(1, 0, 0), fixed=fixed), View(show_fixes=True))
    assert text.splitlines()[-1] == "Fixed 2 findings. Found 1 error."
    assert text.startswith(
        "Fixed 2 findings:\n"
        "- ds.json:\n    1 × unknown-key (LF801)\n"
        "- train.py:\n    1 × forced-float32 (LF101) unsafe\n"
    )


@pytest.mark.parametrize(("name", "files"), [("text", ". 3 files read, none skipped.\n"), ("concise", ".\n")])
def test_a_missing_file_has_not_passed(name: str, files: str) -> None:
    errors = ("x.json: no such file",)
    assert render(name, CheckResult(errors=errors), View()) == ""
    others = render(name, CheckResult(errors=errors, files_read=3, configs=1), View())
    assert others == f"All checks passed in the files that could be read{files}"


def test_a_fix_that_is_only_shown_is_not_fixable() -> None:
    typo = Story().typo()
    assert typo.fix is not None
    shown = replace(typo, fix=replace(typo.fix, applicability=Applicability.DISPLAY))
    text = render("concise", CheckResult(findings=(shown,)), View(unsafe_fixes=True))
    assert "[*]" not in text
