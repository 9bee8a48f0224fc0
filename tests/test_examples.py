"""The five stories of examples/, judged, fixed and confirmed as a user would see them."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT, lintfit

EXAMPLES = ROOT / "examples"
REPORTS = ROOT / "tests" / "reports"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/lintfit.toml"))
GIB = 2**30


def _checked(folder: Path, *flags: str) -> Any:
    return lintfit("check", ".", "--output-format", "json", *flags, cwd=folder).json


def _run(result: Any) -> Any:
    (run,) = [run for run in result["runs"] if run["verdict"] != "unknown"]
    return run


def _rules(result: Any) -> set[str]:
    return {finding["rule"] for finding in result["findings"]}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples and without the rest of the repository, whose pages have hundreds of commands that
    name the same files: whether those are other launches of theirs takes its time."""
    folder = tmp_path_factory.mktemp("alone")
    shutil.copytree(EXAMPLES, folder / "examples")
    return folder


def _copy(name: str, tmp_path: Path) -> Path:
    return shutil.copytree(EXAMPLES / name, tmp_path / name)


CONSOLE = re.compile(r"```console\n\$ lintfit (?P<command>[^\n]*)\n(?P<output>.*?)```", re.DOTALL)


def test_readme_shows_what_the_commands_print(tmp_path: Path) -> None:
    """The page's commands, one after the other in a copy of the folder, so that a check after a fix sees the fix."""
    page = EXAMPLES / "README.md"
    shutil.copytree(EXAMPLES, tmp_path / "examples")

    def printed(block: re.Match[str]) -> str:
        outcome = lintfit(*block["command"].split(), cwd=tmp_path)
        assert outcome.err == ""
        return f"```console\n$ lintfit {block['command']}\n{outcome.out}```"

    text = page.read_text()
    shown = CONSOLE.sub(printed, text)
    if os.environ.get("LINTFIT_UPDATE"):
        page.write_text(shown)
    else:
        assert shown == text


SNIPPET = re.compile(r"^    \$ lintfit (?P<command>[^\n]*)\n(?P<output>(?:    [^\n]*\n|\n)+)", re.MULTILINE)


def test_the_project_s_readme_shows_what_a_command_prints() -> None:
    """Its lines in their order; "…" stands for any number of others."""
    snippets = list(SNIPPET.finditer((ROOT / "README.md").read_text()))
    assert snippets
    for snippet in snippets:
        printed = iter(lintfit(*snippet["command"].split(), cwd=ROOT).out.splitlines())
        for line in snippet["output"].splitlines():
            shown = line.removeprefix("    ")
            assert shown in ("", "…") or shown in printed, f"lintfit {snippet['command']}: {shown}"


def _effective_batch(run: Any) -> int:
    settings = run["settings"]
    keys = ("micro_batch_size", "gradient_accumulation_steps", "gpus")
    product = 1
    for key in keys:
        product *= settings[key]["value"] if key in settings else 1
    return product


def test_there_are_five() -> None:
    assert NAMES == ["litgpt-llama3", "medicalgpt", "minicpm-v", "three-strategies", "trl-grpo"]


@pytest.mark.parametrize("name", NAMES)
def test_report(name: str, alone: Path) -> None:
    outcome = lintfit("check", f"examples/{name}", cwd=alone)
    expected = REPORTS / f"{name}.txt"
    if os.environ.get("LINTFIT_UPDATE"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(outcome.out)
    assert outcome.err == ""
    assert outcome.status == 1
    assert outcome.out == expected.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_fixing_makes_it_fit_and_keeps_the_batch(name: str, tmp_path: Path) -> None:
    folder = _copy(name, tmp_path)
    before = _run(_checked(folder))
    fixed = lintfit("check", ".", "--fix", "--unsafe-fixes", cwd=folder)
    assert "Fixed" in fixed.out or "fixed" in fixed.out
    after = _run(_checked(folder))
    assert after["verdict"] == "fits"
    assert _effective_batch(after) == _effective_batch(before)
    again = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    lintfit("check", ".", "--fix", "--unsafe-fixes", cwd=folder)
    assert again == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_medicalgpt(alone: Path) -> None:
    result = _checked(alone / "examples" / "medicalgpt")
    run = _run(result)
    assert run["verdict"] == "does-not-fit"
    assert "forced-float32" in _rules(result)
    # 16 bytes for each of 7.0006e9 parameters on every GPU, before any activation
    assert run["estimate"]["peak_bytes"]["likely"] > 104 * GIB
    steps = {step["setting"]: step["to"] for step in run["plan"]["steps"]}
    assert (steps["zero_stage"], steps.get("offload_optimizer", "none")) in {(3, "none"), (2, "cpu")}
    (insufficient,) = [f for f in result["findings"] if f["rule"] == "fix-insufficient" and "ZeRO-2" in f["message"]]
    assert "24.4" in insufficient["message"] or "GiB" in insufficient["message"]


def test_three_strategies(alone: Path) -> None:
    rules = _rules(_checked(alone / "examples" / "three-strategies"))
    assert {"removed-argument", "ds-vs-training-args"} <= rules


def test_minicpm_v(alone: Path) -> None:
    result = _checked(alone / "examples" / "minicpm-v")
    run = _run(result)
    assert run["verdict"] == "does-not-fit"
    steps = {step["setting"]: step["to"] for step in run["plan"]["steps"]}
    assert steps.get("offload_optimizer") == "cpu"
    assert steps.get("offload_param", "none") == "none"
    assert run["plan"]["estimate"]["host_bytes"] > 90 * GIB


def test_litgpt_llama3(alone: Path) -> None:
    run = _run(_checked(alone / "examples" / "litgpt-llama3"))
    assert run["verdict"] == "does-not-fit"
    assert 25 * GIB < run["estimate"]["peak_bytes"]["likely"] < 31 * GIB
    assert run["plan"]["applicability"] == "safe"


def test_trl_grpo(alone: Path) -> None:
    result = _checked(alone / "examples" / "trl-grpo")
    run = _run(result)
    assert run["settings"]["gpus"]["value"] == 4
    assert {"zero3-config-after-load", "model-moved-before-prepare"} <= _rules(result)
