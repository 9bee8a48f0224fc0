"""What a search of a folder leaves to ``.gitignore``."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from lintfit.options.model import Options
from lintfit.run import gitignore
from lintfit.run.discover import discover

NAMES = ("ds.json", "train.py", "a/ds.json", "a/train.py", "a/b/ds.json", "a/b/train.py", "c/ds.json", "c/run.sh")


def tree(folder: Path, files: dict[str, str], names: tuple[str, ...] = NAMES) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def found(folder: Path, *paths: str) -> set[str]:
    files = discover([folder / path for path in paths] or [folder], Options(isolated=True)).files
    return {path.relative_to(folder).as_posix() for path in files}


CASES = (
    {".gitignore": "*.json\n"},
    {".gitignore": "/ds.json\n# a comment\n\na/b/\n"},
    {".gitignore": "*.json\n!c/ds.json\n"},
    {".gitignore": "a\n!a/train.py\n"},
    {".gitignore": "*\n!*/\n!*.py\n"},
    {".gitignore": "*.json\n", "a/.gitignore": "!ds.json\n"},
    {"a/.gitignore": "/b\n"},
    {"a/b/.gitignore": "*\n"},
    {".gitignore": "**/b\nc/**\n"},
    {".gitignore": "a/*\n!a/b\n"},
    {".gitignore": "[dr]s.json\n*.s?\n"},
    {".git/info/exclude": "a/\n"},
    {".git/info/exclude": "*.json\n", ".gitignore": "!a/ds.json\n"},
)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("files", CASES, ids=str)
def test_as_git_has_it(files: dict[str, str], tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    tree(tmp_path, files)
    listed = ["git", "-c", "core.excludesFile=", "ls-files", "--others", "--exclude-standard"]
    shown = subprocess.run(listed, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    assert found(tmp_path) == {name for name in shown if not name.endswith(".gitignore")}
    assert len(shown) < len(NAMES) + len(files)


def test_a_search_below_the_root_of_the_repository(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "/a/b/\n", "a/.gitignore": "*.py\n"})
    (tmp_path / ".git").mkdir()
    assert found(tmp_path, "a") == {"a/ds.json"}


def test_what_lies_above_the_repository_does_not_count(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "*.json\n"})
    (tmp_path / "a" / ".git").mkdir()
    assert found(tmp_path, "a") == {"a/ds.json", "a/train.py", "a/b/ds.json", "a/b/train.py"}
    assert "a/ds.json" in found(tmp_path)


def test_a_folder_without_version_control(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "a\n*.sh\n"})
    assert found(tmp_path) == {"ds.json", "train.py", "c/ds.json"}


def test_what_is_named_is_read(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "a/\n*.json\n", "a/.gitignore": "b\n"})
    assert found(tmp_path, "ds.json") == {"ds.json"}
    assert found(tmp_path, "a") == {"a/ds.json", "a/train.py"}
    assert found(tmp_path, "a/b") == {"a/b/ds.json", "a/b/train.py"}


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    tree(outside, {"patterns": "*.json\n", "info/exclude": "*.py\n"}, ())
    tree(inside, {}, ("ds.json", "train.py"))
    (inside / ".git").symlink_to(outside)
    (inside / ".gitignore").symlink_to(outside / "patterns")
    assert found(inside) == {"ds.json", "train.py"}


def test_odd_files(tmp_path: Path) -> None:
    tree(tmp_path, {"c/.gitignore": "#" * gitignore.LARGEST + "\n*.json\n"})
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbf*.sh\r\n\xff\xfe\x00\r\n!\n[\r\n\\\n")
    (tmp_path / "a" / ".gitignore").mkdir()
    assert found(tmp_path) == set(NAMES) - {"c/run.sh"}


def test_a_pattern_that_would_take_hours(tmp_path: Path) -> None:
    name = "a" * 200 + ".py"
    tree(tmp_path, {".gitignore": "*a" * 40 + "b\n*.json\n"}, (name, "ds.json"))
    assert found(tmp_path) == {name}


def test_a_path_of_very_many_folders_that_are_not_there(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "b/\n"})
    begun = time.process_time()
    assert not gitignore.is_ignored(tmp_path / ("a/" * 1500) / "c", tmp_path)
    assert gitignore.is_ignored(tmp_path / ("a/" * 500) / "b" / "c", tmp_path)
    assert time.process_time() - begun < 2


def test_patterns_of_folders_behind_one_that_is_not_there_do_not_count(tmp_path: Path) -> None:
    tree(tmp_path, {"a/.gitignore": "x\n"})
    assert gitignore.is_ignored(tmp_path / "a" / "nowhere" / "x", tmp_path)
    assert not gitignore.is_ignored(tmp_path / "c" / "nowhere" / "x", tmp_path)
