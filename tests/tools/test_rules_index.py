"""``rules/README.md`` is what the pages make of it, and no planned rule is forgotten."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lintfit.options.rules_catalog import load_rules
from tests.support import ROOT, SHARED

TOOL = ROOT / "tools" / "rules_index.py"
PLANNED = SHARED / "reference" / "rules.md"


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rules_index", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["rules_index"] = module
    spec.loader.exec_module(module)
    return module


def test_it_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_rule_stands_in_it_once_and_every_link_leads_somewhere() -> None:
    text = (ROOT / "rules" / "README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert all((ROOT / "rules" / link).is_file() for link in links)
    rows = re.findall(r"^\| (LF\d{3}) \| \[([\w-]+)\]", text, re.MULTILINE)
    assert sorted(rows) == sorted((rule.code, rule.name) for rule in load_rules().values())


@pytest.mark.parametrize(
    ("code", "title"),
    [("LF012", "Syntax and schema"), ("LF090", "Comments for lintfit"), ("LF901", "The memory verdict")],
)
def test_families(code: str, title: str) -> None:
    assert tool().family(code) == title


@pytest.mark.parametrize(
    "text",
    [
        '["LF906 unknown-hardware"]\nsort = "merged"\nwhy = "x"\n',
        '["LF906 unknown-hardware"]\nsort = "dropped"\n',
        '["LF906 unknown-hardware"]\nsort = "later"\nwhy = "x"\n',
        '["unknown-hardware"]\nsort = "dropped"\nwhy = "x"\n',
    ],
)
def test_an_entry_that_is_not_whole(text: str) -> None:
    with pytest.raises(ValueError, match="needs sort, why"):
        tool().entries(text)


def test_contradictions_are_told() -> None:
    text = (
        '["LF001 invalid-json"]\nsort = "dropped"\nwhy = "x"\n'
        '["LF999 other"]\nsort = "merged"\ninto = "no-such-rule"\nwhy = "x"\n'
    )
    index = tool()
    assert list(index.problems(load_rules(), index.entries(text))) == [
        "LF001 has a page and stands in catalogue.toml",
        "LF999 is merged into no-such-rule, which has no page",
    ]


@pytest.mark.skipif(not PLANNED.is_file(), reason="the plan is not at hand")
def test_every_planned_rule_has_a_page_or_a_reason() -> None:
    planned = re.findall(r"^\*\*(LF\d{3}) ([\w-]+)", PLANNED.read_text("utf-8"), re.MULTILINE)
    assert len(planned) > 80
    index = tool()
    there = {rule.code for rule in load_rules().values()}
    there |= {entry.code for entry in index.entries(index.CATALOGUE.read_text("utf-8"))}
    assert [f"{code} {name}" for code, name in planned if code not in there] == []


def test_the_page_of_a_rule_says_how_to_silence_it() -> None:
    from lintfit.report import View
    from lintfit.report.rules import page

    assert "# lintfit: ignore[invalid-json]" in page("LF001", View())
    assert all(rule.summary and len(rule.summary) <= 100 for rule in load_rules().values())


def test_what_the_docs_say_about_the_config_is_read(tmp_path: Path) -> None:
    import tomllib

    from lintfit.options.config_values import KEYS

    text = (ROOT / "docs" / "silencing.md").read_text("utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert set(tomllib.loads(block)) <= set(KEYS)
