"""docs/reference.md names every key that there is, and none that there is not."""

from __future__ import annotations

import json
import re
from typing import Any

from lintfit.cli.flags import HARDWARE, SPEC
from lintfit.memory.reading.keys import KNOWN
from lintfit.memory.spec import Evaluation, Generation
from lintfit.options.config_values import KEYS
from lintfit.settings.registry import KERNELS, TRAINERS
from tests.support import ROOT, lintfit
from tools import reference_tables

PAGE = (ROOT / "docs" / "reference.md").read_text("utf-8")
MEMORY = (ROOT / "docs" / "memory.md").read_text("utf-8")
NAME = re.compile(r"`([a-z0-9_-]+)`")


def _section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def _rows(section: str) -> dict[str, str]:
    """The table's rows by their first cell."""
    cells = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {first.strip(): " | ".join(rest) for first, *rest in cells}


def _firsts(section: str) -> set[str]:
    return {name for cell in _rows(section) for name in NAME.findall(cell)}


def test_keys_of_a_spec() -> None:
    assert _firsts(_section("A spec")) == KNOWN
    assert reference_tables.page(PAGE) == PAGE, "python tools/reference_tables.py writes it anew"


def test_flags_have_the_names_of_these_keys() -> None:
    flags = {name.replace("-", "_") for name in (*HARDWARE, *SPEC)}
    assert KNOWN - flags == {"gpu_memory_gib", "host_memory_gib"}
    assert flags - KNOWN == {"gpu_memory", "host_memory", "nvme_path"}


def test_words_and_parts_of_a_spec() -> None:
    rows = _rows(_section("A spec"))
    assert set(NAME.findall(rows["`trainer`"])) == {*TRAINERS, "sft"}
    assert set(NAME.findall(rows["`generation`"])) == set(Generation.__annotations__)
    assert set(KERNELS) == set(NAME.findall(rows["`fused_kernels`"]))
    evaluation = MEMORY.partition("\n## Evaluation\n")[2].partition("\n## ")[0]
    stated = {name for line in evaluation.splitlines() if line.startswith("| `") for name in NAME.findall(line[:40])}
    assert set(Evaluation.__annotations__) <= stated


def test_keys_of_the_config() -> None:
    section = _section("The config")
    assert _firsts(section) == {*KEYS, "run"}
    per_run = {name for row, rest in _rows(section).items() if "✓" in rest for name in NAME.findall(row)}
    assert per_run == {name for name, key in KEYS.items() if key.per_run}


def _checked(*arguments: str) -> Any:
    return json.loads(lintfit(*arguments, "--output-format", "json", cwd=ROOT).out)


def test_keys_of_the_json() -> None:
    checked = _checked("check", "examples/medicalgpt", "--show-plans")
    (run,) = checked["runs"]
    estimate = _rows(_section("An estimate"))
    assert {name for cell in estimate for name in NAME.findall(cell)} == {*run["estimate"], "explanation"}
    assert set(NAME.findall(estimate["`components`"])) == set(run["estimate"]["components"])
    assert set(run["estimate"]["phases"]) <= set(NAME.findall(estimate["`peak_phase`"]))
    section = _section("The JSON of `check` and `estimate`")
    rows = _rows(section)
    stated = {row.strip("`"): set(NAME.findall(rest)) for row, rest in rows.items()}
    assert {*checked} == {"schema_version", "lintfit_version", "runs", "findings", "skipped", "summary"}
    assert stated["runs[]"] >= {*run}
    assert stated["findings[]"] == {key for finding in checked["findings"] for key in finding}
    fixes = [finding["fix"] for finding in checked["findings"] if finding["fix"]]
    edits = {key for fix in fixes for edit in fix["edits"] for key in edit}
    assert stated["findings[].fix"] >= {*fixes[0], *edits}
    assert stated["summary"] == {*checked["summary"]}
    assert {setting["from"]["kind"] for setting in run["settings"].values()} <= stated["runs[].settings"]


def test_the_design_names_every_module_that_is_no_room_s() -> None:
    design = (ROOT / "docs" / "design.md").read_text("utf-8")
    for folder in ("lintfit", "lintfit/memory"):
        modules = {file.name for file in (ROOT / folder).glob("[a-z]*.py")}
        assert [name for name in sorted(modules) if name not in design] == []
