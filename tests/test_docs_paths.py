"""Every file that the docs name is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])
FOLDERS = ("lintfit", "rules", "schemas", "tests", "tools", "bench", "docs", "examples")
ROOMS = tuple(path.parent.name for path in (ROOT / "lintfit").glob("*/__init__.py"))
_CODE = re.compile(r"`([\w./-]+)`")


def _named(text: str, folders: tuple[str, ...]) -> Iterator[str]:
    """What stands in backquotes and begins with one of these folders."""
    return (name for name in _CODE.findall(text) if name.partition("/")[0] in folders and "/" in name)


def _missing(text: str, *, rooms: bool) -> list[str]:
    absent = [name for name in _named(text, FOLDERS) if not (ROOT / name).exists()]
    if rooms:
        absent += [name for name in _named(text, ROOMS) if not (ROOT / "lintfit" / name).exists()]
    return absent


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_on_a_page_is_there(page: Path) -> None:
    """In the pages about the code a path may begin with a room of ``lintfit/``."""
    assert _missing(page.read_text("utf-8"), rooms=page.name in ("design.md", "CONTRIBUTING.md")) == []


def test_paths_that_are_not_there_are_seen() -> None:
    text = "`lintfit/memory/no_such.py`, `run/no_such.py`, `run/model.py`, `rules/`, `org/model`, `lintfit/run`"
    assert _missing(text, rooms=True) == ["lintfit/memory/no_such.py", "run/no_such.py"]
    assert _missing(text, rooms=False) == ["lintfit/memory/no_such.py"]


def test_the_design_names_every_room() -> None:
    design = (ROOT / "docs" / "design.md").read_text("utf-8")
    assert [room for room in ROOMS if f"| `lintfit/{room}/` |" not in design] == []
