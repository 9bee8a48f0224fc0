"""Where the repositories lie that a table names."""

from __future__ import annotations

from pathlib import Path


def checkout(folder: Path, repo: str) -> Path | None:
    """Where a repository's files are, None where they are not there."""
    found = (folder / name for name in (repo.replace("/", "+"), repo))
    return next((path for path in found if path.is_dir()), None)
