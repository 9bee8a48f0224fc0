"""docs/commands.md has every flag of every command in one that works, and --help has them on two screens."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from lintfit.cli.main import lintfit as program
from lintfit.cli.spelling import Forgiving
from tests.support import ROOT, lintfit

PAGE = (ROOT / "docs" / "commands.md").read_text("utf-8")
LINES = [line for block in re.findall(r"```console\n(.*?)```", PAGE, re.S) for line in block.splitlines()]
TWO_SCREENS = 2 * 40


def _commands() -> list[tuple[list[str], str]]:
    """The arguments of each command, and the file that it reads as standard input."""
    found = []
    for line in LINES:
        assert line.startswith("$ lintfit "), line
        command, _, stdin = line.removeprefix("$ lintfit ").partition(" < ")
        found.append((shlex.split(command), stdin.strip()))
    return found


def test_every_command_works(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "README.md", tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    failed = []
    for arguments, file in _commands():
        stdin = (tmp_path / file).read_bytes() if file else None
        done = lintfit(*arguments, cwd=tmp_path, stdin=stdin)
        if done.status not in (0, 1) or done.err.startswith("lintfit:"):
            failed.append((arguments, done.err))
    assert not failed, "\n".join(f"{a} {e[:200]}" for a, e in failed)


@pytest.mark.parametrize("name", sorted(program.commands))
def test_every_flag_has_an_example(name: str) -> None:
    command = program.commands[name]
    shown = {word.partition("=")[0] for arguments, _ in _commands() if arguments[0] == name for word in arguments}
    flags = {each.opts[-1] for each in command.params if isinstance(each, click.Option) and not each.hidden}
    assert flags - shown - {"--help-all"} == set()


@pytest.mark.parametrize("command", sorted(program.commands))
def test_help_fits_two_screens(command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = lintfit(command, "--help", cwd=tmp_path, env={"COLUMNS": "80"}).out
    assert len(text.splitlines()) <= TWO_SCREENS
    for each in program.commands[command].params:
        if isinstance(each, click.Option) and not each.hidden:
            assert each.opts[-1].removeprefix("--") in " ".join(text.split()).replace("- ", "-"), each.opts


def test_all_keys_have_a_line_where_they_are_asked_for(tmp_path: Path) -> None:
    short, whole = (lintfit("estimate", flag, cwd=tmp_path).out for flag in ("--help", "--help-all"))
    assert "\n  --lora-dropout SHARE" in whole and "\n  --lora-dropout SHARE" not in short
    assert isinstance(program.commands["estimate"], Forgiving)
