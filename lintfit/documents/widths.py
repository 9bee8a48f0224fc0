"""How long a line may get: what the project's formatter says, else what the file's own lines show."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from lintfit.documents import door
from lintfit.documents.door import MAX_CONFIG
from lintfit.documents.lines import line_end, line_start

LEAST, MOST = 88, 120
"""Columns: what black and ruff allow by themselves, and what a file's own long lines can raise that to."""


def python_width(path: Path, text: str) -> int:
    """Columns that a line of Python may have: ``line-length`` of the nearest config of ruff or black, else as shown."""
    for folder in path.absolute().parents:
        stated = _ruff(folder / "ruff.toml") or _ruff(folder / ".ruff.toml") or _project(folder / "pyproject.toml")
        if stated is not None:
            return stated
    return shown_width(text)


def shown_width(text: str) -> int:
    """Columns that a line may have by the longest that is there."""
    longest = max((len(line) for line in text.splitlines()), default=0)
    return max(LEAST, min(longest, MOST))


def has_no_room(text: str, offset: int, more: int) -> bool:
    """Whether so many characters make the line at ``offset`` too long that is not so already."""
    now, most = line_end(text, offset, breaks=False) - line_start(text, offset), shown_width(text)
    return now <= most < now + more


def _ruff(path: Path) -> int | None:
    content = _read(path)
    return _stated(content) if content is not None else None


def _project(path: Path) -> int | None:
    tools = (_read(path) or {}).get("tool")
    if not isinstance(tools, dict):
        return None
    tables = (tools.get(name) for name in ("ruff", "black"))
    return next((_stated(table) for table in tables if isinstance(table, dict)), None)


def _stated(table: dict[str, Any]) -> int:
    length = table.get("line-length", LEAST)
    return length if isinstance(length, int) and length > 0 else LEAST


def _read(path: Path) -> dict[str, Any] | None:
    """A TOML file's content; None where there is none that can be read: style is nothing to stop for."""
    try:
        found = door.state(path)
    except OSError:
        return None
    return _content(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=64)
def _content(path: Path, changed: int, size: int) -> dict[str, Any] | None:
    """The same, of a file as it was last changed: many edits ask about one file."""
    from lintfit.documents.toml import parse

    try:
        return parse(door.read_regular(path, MAX_CONFIG).decode("utf-8-sig"))
    except (OSError, ValueError):
        return None
