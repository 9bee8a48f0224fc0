"""The pre-commit hooks: what they run and which files they are given."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from lintfit.cli.main import lintfit
from lintfit.run.discover import NAMES, NOTEBOOK, SUFFIXES
from tests.support import ROOT

HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
BY_FILES = [hook for hook in HOOKS if not hook.get("always_run")]


def test_three_check_and_one_fixes() -> None:
    assert {hook["id"]: hook["entry"] for hook in HOOKS} == {
        "lintfit": "lintfit check",
        "lintfit-fix": "lintfit check --fix",
        "lintfit-repository": "lintfit check .",
        "lintfit-staged": "lintfit check --staged",
    }
    without = [hook["id"] for hook in HOOKS if not hook.get("pass_filenames", True)]
    assert without == ["lintfit-repository", "lintfit-staged"]


def test_a_commit_that_only_deletes_files_is_looked_at() -> None:
    """pre-commit counts no deleted file: a hook that waits for one would be passed over."""
    (staged,) = (hook for hook in HOOKS if hook["id"] == "lintfit-staged")
    assert staged["always_run"] is True
    assert "files" not in staged


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_hook(hook: dict[str, Any]) -> None:
    assert hook["language"] == "python"
    assert hook["require_serial"] is True, "chunks in parallel would tear runs apart"
    assert CliRunner().invoke(lintfit, [*hook["entry"].split()[1:], *hook["args"], "--help"]).exit_code == 0
    assert "--as-found" in hook["args"], "files that a hook names count as found by a search"


@pytest.mark.parametrize("hook", BY_FILES, ids=lambda hook: hook["id"])
@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("ds_config.json", True),
        ("conf/accelerate.yaml", True),
        ("conf/accelerate.yml", True),
        ("train.py", True),
        ("scripts/run.sh", True),
        ("README.md", True),
        ("notebooks/train.ipynb", True),
        ("jobs/sky.yaml", True),
        (".vscode/launch.json", True),
        ("justfile", True),
        ("sub/.justfile", True),
        ("adjustfile", False),
        ("train.pyc", False),
        ("data.jsonl", False),
    ],
)
def test_files(hook: dict[str, Any], path: str, given: bool) -> None:
    assert bool(re.search(hook["files"], path)) is given


@pytest.mark.parametrize("hook", BY_FILES, ids=lambda hook: hook["id"])
@pytest.mark.parametrize(
    "name", [*(f"conf/a{end}" for end in (*SUFFIXES, NOTEBOOK)), *sorted(NAMES), "sub/GNUmakefile"]
)
def test_a_hook_is_given_what_a_search_of_a_folder_finds(hook: dict[str, Any], name: str) -> None:
    assert re.search(hook["files"], name)


def test_the_whole_repository_is_checked_where_the_config_changes() -> None:
    given = {hook["id"] for hook in BY_FILES if re.search(hook["files"], "lintfit.toml")}
    assert given == {"lintfit-repository"}


OWN: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]


def test_hooks_of_this_repository_run_what_is_installed() -> None:
    assert [repository["repo"] for repository in OWN] == ["local"]
    (hooks,) = (repository["hooks"] for repository in OWN)
    words = {hook["id"]: hook["entry"].split() for hook in hooks}
    assert {entry[0] for entry in words.values()} == {"ruff", "mypy", "python"}
    assert all(hook["language"] == "system" for hook in hooks)
    assert all((ROOT / entry[1]).is_file() for entry in words.values() if entry[0] == "python")
