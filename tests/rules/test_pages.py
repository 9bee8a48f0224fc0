"""Every case of every rule's page, run through the whole engine."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.findings.model import Applicability, Finding, Severity
from lintfit.findings.results import CheckResult
from lintfit.options.model import Options
from lintfit.options.rules_catalog import INDEX, Rule, load_rules
from lintfit.sources.recipes.front_ends import COMMANDS
from tests.rules.pages import CHECKS, PAGES, Case, cases_of
from tests.rules.style import wrong_with
from tools.rules_index import of_runs, of_scripts

PAGE_FILES = sorted(page for page in PAGES.glob("*.md") if page.name != INDEX)
CASES = [case for page in PAGE_FILES for case in cases_of(page)]


def modules() -> set[str]:
    """The names of the modules of checks that define a check."""
    found = set()
    for path in CHECKS.glob("*.py"):
        names = {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}
        if names & {"check_file", "check_run", "check_unused"}:
            found.add(path.stem.replace("_", "-"))
    return found


def run(folder: Path, case: Case, **switches: bool) -> CheckResult:
    for name, text in case.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8", newline="")
    return check([folder], Options(select=(case.rule,), origins={"select": "the page"}, **switches))


def is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is Applicability.SAFE


def shown(result: CheckResult, folder: Path) -> list[str]:
    lines = []
    for finding in result.findings:
        document = finding.place.document
        path = document.path if document.path.is_absolute() else folder / document.path
        line = document.position(finding.place.span.start).line
        lines.append(
            f"{path.resolve().relative_to(folder.resolve()).as_posix()}:{line} "
            f"{finding.severity} {finding.rule}: {finding.message}"
        )
    return lines


def test_there_are_pages() -> None:
    assert len(PAGE_FILES) >= 30


def test_every_page_has_a_module_and_every_module_a_page() -> None:
    assert modules() == set(load_rules())


@pytest.mark.parametrize("page", PAGE_FILES, ids=lambda page: page.stem)
def test_a_page_is_whole(page: Path) -> None:
    text = page.read_text("utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## What it does",
        "## Why is this bad?",
        "## What to do",
        "## When it is quiet",
        "## Cases",
    ]
    cases = cases_of(page)
    assert [case for case in cases if case.findings], "no case that is reported"
    assert [case for case in cases if case.findings == []], "no case that stays quiet"
    assert all(case.findings is not None and case.files for case in cases)
    assert len({case.title for case in cases}) == len(cases)


@pytest.mark.parametrize("rule", of_runs(load_rules()), ids=lambda rule: rule.name)
def test_a_rule_about_what_a_run_does_speaks_of_a_recipe_and_of_a_script(rule: Rule) -> None:
    assert "script" not in rule.files
    reported = [case for case in cases_of(rule.page) if case.findings]
    recipes = [case for case in reported if _of_a_recipe(case)]
    assert recipes, "no case in which a recipe's run is reported"
    assert len(recipes) < len(reported)


def _of_a_recipe(case: Case) -> bool:
    launched = any(re.match(_FRONT_ENDS, text) for name, text in case.files.items() if name.endswith(".sh"))
    return launched and not any(name.endswith(".py") for name in case.files)


_FRONT_ENDS = rf"(accelerate launch .*-m axolotl\.cli\.train|{'|'.join(COMMANDS)}) "


def test_a_rule_about_python_says_why_it_asks_no_recipe() -> None:
    reasons = of_scripts(load_rules())
    assert "forced-float32" in reasons
    assert [name for name, why in reasons.items() if not why.endswith(".")] == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(tmp_path, case)
    assert not result.errors
    assert not [f for f in result.findings if f.severity is Severity.INFO and is_safe(f)], (
        "information is not rewritten"
    )
    lines = shown(result, tmp_path)
    expected = case.findings or []
    assert len(lines) == len(expected), lines
    for line, want in zip(lines, expected, strict=True):
        head = f"{want.path}:{want.line} {want.severity} {want.rule}: "
        assert line.startswith(head), line
        assert want.message in line.removeprefix(head)
    assert [problem for finding in result.findings for problem in wrong_with(finding)] == [], "the house's wording"


@pytest.mark.parametrize("case", [case for case in CASES if case.fixed], ids=str)
def test_safe_fix(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(tmp_path, case, fix=True)
    after = {name: (tmp_path / name).read_text("utf-8") for name in case.files}
    assert after == {**case.files, **case.fixed}


@pytest.mark.parametrize("case", [case for case in CASES if case.unsafe_fixed], ids=str)
def test_unsafe_fix(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(tmp_path, case, fix=True, unsafe_fixes=True)
    after = {name: (tmp_path / name).read_text("utf-8") for name in {**case.files, **case.unsafe_fixed}}
    assert after == {**case.files, **case.unsafe_fixed}


@pytest.mark.parametrize("case", [case for case in CASES if case.unsafe_fixed and not case.fixed], ids=str)
def test_unsafe_fix_waits_to_be_asked_for(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(tmp_path, case, fix=True)
    assert {name: (tmp_path / name).read_text("utf-8") for name in case.files} == case.files
