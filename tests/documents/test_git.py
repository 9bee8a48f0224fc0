"""git is asked with all turned off that a repository may make it run, within bounds of time and size."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from lintfit.documents import git as asked
from lintfit.documents.git import Git
from lintfit.errors import LintfitError
from lintfit.report.pull_request import shown_lines
from tests.repository import CLEAN, Repository
from tests.support import lintfit

CONFIG = """
[core]
    fsmonitor = {run} fsmonitor
    hooksPath = hooks
    pager = {run} pager
    sshCommand = {run} ssh
[pager]
    diff = {run} pager-diff
[diff]
    external = {run} external
[diff "evil"]
    textconv = {run} textconv
    command = {run} command
[filter "evil"]
    clean = {run} clean
    smudge = {run} smudge
    required
[filter "two.dots"]
    process = {run} process
    required = true
"""
HOOKS = ("post-index-change", "pre-commit", "fsmonitor-watchman", "query-watchman")


@contextmanager
def clean() -> Iterator[None]:
    with patch.dict(os.environ, CLEAN):
        yield


@pytest.fixture
def hostile(tmp_path: Path) -> Repository:
    """A repository whose config, hooks and attributes note in a file ``ran`` what git has been made to run."""
    repository = Repository(tmp_path / "repository")
    repository.commit(ds_json='{"zero_optimization": {"stage": 2}}\n', a_json="{}\n")
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path / "ran"}\nexec cat\n')
    program.chmod(0o755)
    for name in HOOKS:
        hook = repository.folder / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho hook {name} >> {tmp_path / 'ran'}\n")
        hook.chmod(0o755)
    attributes = "*.json filter=evil diff=evil\na.json filter=two.dots\n"
    (repository.folder / ".gitattributes").write_text(attributes)
    with (repository.folder / ".git" / "config").open("a") as config:
        config.write(CONFIG.format(run=program))
    for path in (repository.folder / "ds.json", repository.folder / "a.json"):
        path.write_text('{"zero_optimization": {"stage": 3}}\n')
    return repository


@pytest.mark.parametrize("flags", [["--staged"], ["--changed-since", "HEAD"], ["--changed-since", "main"]])
def test_nothing_of_the_repository_is_run_by_check(flags: list[str], hostile: Repository, tmp_path: Path) -> None:
    outcome = lintfit("check", *flags, "--output-format", "concise", cwd=hostile.folder, env=CLEAN)
    assert outcome.status in (0, 1)
    assert not outcome.err
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_nothing_of_the_repository_is_run_for_a_review(hostile: Repository, tmp_path: Path) -> None:
    with clean():
        assert shown_lines("main", hostile.folder)["ds.json"] == ((1, 1),)
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_the_repository_would_run_them(hostile: Repository, tmp_path: Path) -> None:
    """Else the tests above hold nothing. Whether a diff comes to the first filter before the second stops it hangs on
    when the index was written; a status does."""
    for asked_for in ("status", "diff"):
        with suppress(subprocess.CalledProcessError):  # the filter that speaks no protocol
            hostile.git(asked_for)
    ran = (tmp_path / "ran").read_text()
    assert "fsmonitor" in ran
    assert "clean" in ran


def test_the_index_is_not_written(hostile: Repository) -> None:
    index = hostile.folder / ".git" / "index"
    before = index.read_bytes()
    os.utime(hostile.folder / "ds.json", (1, 1))
    with clean():
        Git(hostile.folder).diff("--name-only")
    assert index.read_bytes() == before


def test_a_filter_that_no_option_can_name_is_refused(hostile: Repository) -> None:
    with (hostile.folder / ".git" / "config").open("a") as config:
        config.write('[filter "a=b"]\n    clean = false\n')
    with clean(), pytest.raises(LintfitError, match="cannot be turned off"):
        Git(hostile.folder).diff("--name-only")


def test_a_git_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(asked, "PATIENCE", 0.2)
    with pytest.raises(LintfitError, match=r"longer than 0\.2 seconds"):
        Git(tmp_path).ask("rev-parse", "HEAD")


def test_a_git_that_says_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = tmp_path / "git"
    endless.write_text("#!/bin/sh\nexec cat /dev/zero\n")
    endless.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(asked, "MAX_ANSWER", 1 << 16)
    with pytest.raises(LintfitError, match="answers with more than"):
        Git(tmp_path).ask("rev-parse", "HEAD")


def test_what_git_complains_about_is_one_line(tmp_path: Path) -> None:
    with clean(), pytest.raises(LintfitError) as found:
        Git(tmp_path).ask("cat-file", "-e", "nowhere")
    assert "\n" not in str(found.value)
