"""Modules of the checked tree are read and never imported, however lintfit is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lintfit

SCRIPT = Path(sys.executable).with_name("lintfit")
NAMES = ("inspect", "click", "json", "dataclasses", "pathlib", "libcst", "rich", "ruamel")


@pytest.mark.parametrize("command", [[sys.executable, "-m", "lintfit"], [str(SCRIPT)]], ids=["module", "script"])
def test_no_module_of_the_tree_stands_in_for_another(tmp_path: Path, command: list[str]) -> None:
    if not Path(command[0]).exists():
        pytest.skip("lintfit is not installed as a command")
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text("from os import _exit\n\n_exit(7)\n")
    path = {"PYTHONPATH": str(Path(lintfit.__file__).parents[1])}
    for flags in (["check", "."], ["estimate", "--help"]):
        done = subprocess.run(
            [*command, *flags], cwd=tmp_path, env={**os.environ, **path}, capture_output=True, check=False
        )
        assert done.returncode in (0, 1), done
