"""Files are opened, listed and looked for in one module: the syntax of all others is searched for what would do so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

DOOR = "documents/door.py"

OTHERS = {
    "documents/files.py": "writes files, and looks whether they are still what they were",
    "documents/attributes.py": "hands on what a file has beside its text to the one that takes its place",
    "documents/locks.py": "makes and holds the files that lock a tree",
    "resources.py": "opens what comes with lintfit",
    "__main__.py": "puts a closed standard output in order",
    "documents/seen.py": "asks again what was asked of the file system",
    "cli/cache.py": "keeps reports in the user's cache folder",
    "cli/output.py": "writes a report to a stream or to what is no file, and does the same",
}
"""Modules that go past the door, and why."""

METHODS = frozenset(
    {
        *("open", "read_bytes", "read_text", "write_bytes", "write_text", "iterdir", "glob", "rglob"),
        *("is_file", "is_dir", "is_symlink", "exists", "stat", "lstat", "scandir", "listdir", "isfile", "isdir"),
        *("lexists", "access", "touch", "unlink", "mkdir"),
    }
)
OWN = ("formatter", "door", "workspace", "_workspace", "self")
"""What methods of these names are called of that are no paths: the door itself, and a workspace."""


def test_nothing_else_opens_files() -> None:
    found = {name for name, _ in _openings(ROOT / "lintfit")}
    assert found - {DOOR} == set(OTHERS), [each for each in _openings(ROOT / "lintfit") if each[0] not in OTHERS]


@pytest.mark.parametrize(
    "code",
    ["open(path)", "path.read_text()", "os.walk(folder)", "(a / b).exists()", "glob.glob('*')", "Path(a).stat()"],
)
def test_an_opening_is_seen(code: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(code)
    assert [name for name, _ in _openings(tmp_path)] == ["a.py"]


@pytest.mark.parametrize("code", ["door.exists(path)", "self.workspace.exists(path)", "a.opened", "ast.walk(tree)"])
def test_what_opens_nothing_is_not(code: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(code)
    assert not list(_openings(tmp_path))


def _openings(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _opens(node.func):
                yield path.relative_to(folder).as_posix(), f"{node.lineno}: {ast.unparse(node)[:60]}"


def _opens(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id == "open"
    if not isinstance(called, ast.Attribute) or (called.attr not in METHODS and ast.unparse(called) != "os.walk"):
        return False
    return ast.unparse(called.value).rpartition(".")[2] not in OWN
