"""A repository of git in a folder of its own, that knows nothing of the one who runs the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

CLEAN = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


class Repository:
    """``write`` changes the working tree, ``git`` is git."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env={**kept, **CLEAN}, capture_output=True, check=True, timeout=60
        )
        return done.stdout.decode()

    def write(self, **files: str) -> None:
        """``run_sh`` is ``run.sh``, ``conf__ds_json`` ``conf/ds.json``."""
        for name, text in files.items():
            stem, _, suffix = name.replace("__", "/").rpartition("_")
            path = self.folder / f"{stem}.{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, **files: str) -> None:
        """Write files and commit all that there is."""
        self.write(**files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=a change")
