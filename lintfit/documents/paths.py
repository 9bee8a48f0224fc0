"""Where a path leads, links and ``..`` followed, and whether that is below a folder."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from lintfit.documents import seen


def resolved(path: Path) -> Path:
    """The path without links and ``..``; as it stands where its links lead in a circle or it is no name of a file."""
    found = _resolved(path)
    if seen.watching is not None:
        seen.note("leads", path, str(found))
    return found


def located(path: Path) -> Path:
    """The same for what is read, and faster: each folder is followed once in a process. What is written asks anew."""
    if path.name in ("", ".."):
        return resolved(path)
    here = _folder(path.parent) / path.name
    lies = seen.lies(here)
    seen.note("lies", here, lies)
    return resolved(here) if lies == "l" else here


@lru_cache(maxsize=8192)
def _folder(folder: Path) -> Path:
    return resolved(folder)


def led(path: str) -> str:
    """Where a path leads now, as it is noted."""
    return str(_resolved(Path(path)))


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path.absolute()


def is_below(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path is one of the folders or lies below one of them; both resolved alike."""
    parts = path.parts
    return any(parts[: len(top)] == top for top in (folder.parts for folder in folders))
