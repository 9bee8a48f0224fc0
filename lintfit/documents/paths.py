"""Where a path leads, links and ``..`` followed, and whether that is below a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def resolved(path: Path) -> Path:
    """The path without links and ``..``; as it stands where its links lead in a circle or it is no name of a file."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path.absolute()


def is_below(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path is one of the folders or lies below one of them; both resolved alike."""
    return any(folder == path or folder in path.parents for folder in folders)
