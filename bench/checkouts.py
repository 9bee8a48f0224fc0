"""Where the repositories lie that a table names, and what stood in them at a commit."""

from __future__ import annotations

import subprocess
from pathlib import Path


def checkout(folder: Path, repo: str) -> Path | None:
    """Where a repository's files are, None where they are not there."""
    found = (folder / name for name in (repo.replace("/", "+"), repo))
    return next((path for path in found if path.is_dir()), None)


def files_at(folder: Path, repo: str, commit: str, paths: list[str]) -> dict[str, str]:
    """The text of every file at and under ``paths`` at a commit of a repository, by its path.

    ``folder`` holds a bare repository as ``owner+name/repo``, or a clone as ``owner+name``. Files that are not text
    are left out.
    """
    root = checkout(folder, repo)
    if root is None:
        raise SystemExit(f"{folder}: no repository of {repo}")
    root = root / "repo" if (root / "repo").is_dir() else root
    listed = _git(root, "ls-tree", "-rz", "--name-only", commit, "--", *paths).decode()
    shown = {name: _git(root, "show", f"{commit}:{name}") for name in listed.split("\0") if name}
    return {name: text for name, raw in shown.items() if (text := _text(raw)) is not None}


def _git(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=True).stdout


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
