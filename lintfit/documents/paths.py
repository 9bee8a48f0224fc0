"""Where a path leads, links and ``..`` followed, and whether that is below a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lintfit.documents import seen


def resolved(path: Path) -> Path:
    """The path without links and ``..``; as it stands where its links lead in a circle or it is no name of a file."""
    found = _resolved(path)
    if seen.watching is not None:
        seen.note("leads", path, str(found))
    return found


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
    return any(folder == path or folder in path.parents for folder in folders)
