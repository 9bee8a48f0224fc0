"""git, asked about a repository with all turned off that the repository may make it run.

A repository's own config and attributes name programs: hooks, filters (``clean``), ``textconv``, drivers of ``diff``,
a file system monitor, transports that fetch what a partial clone lacks. None of these is needed to say which files
differ. Every question is bounded in time and in what it may answer, and writes nothing, the index included.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lintfit.documents.programs import Ended, run
from lintfit.errors import LintfitError

PATIENCE = 8.0
"""Seconds that git may take for one question; a cold repository of the size of Linux takes a few."""
MAX_ANSWER = 256 << 20
"""Bytes of an answer."""

_OFF = (
    "--no-pager",
    "--literal-pathspecs",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.quotePath=false"),
    *("-c", "diff.relative=false"),
)
PLAIN_DIFF = ("--no-color", "--no-ext-diff", "--no-textconv", f"-O{os.devnull}")
"""What every ``git diff`` gets: no program of the repository's own, and none of the user's taste."""
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",  # the index is not written
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # nor fetched by a git that does not know that one yet
}
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"


class Git:
    """The repository that a folder belongs to. Raises LintfitError, one line, wherever git cannot answer."""

    def __init__(self, folder: Path) -> None:
        # A hook is given its repository, and often an index of its own, relative to the working directory.
        self._folder = Path() if "GIT_DIR" in os.environ or "GIT_INDEX_FILE" in os.environ else folder
        self._without_filters: tuple[str, ...] | None = None

    def ask(self, *words: str, stdin: bytes = b"", allowed: Sequence[int] = (0,)) -> bytes:
        """What a command of git that runs no filters prints; empty where it ends with an allowed status but 0."""
        ended = _run([*_OFF, *words], self._folder, stdin)
        if ended.status not in allowed:
            raise LintfitError(f"git {words[0]}: {_reason(ended)}")
        return ended.out if ended.status == 0 else b""

    def diff(self, *words: str) -> bytes:
        """``git diff`` between commits, the index and the working tree."""
        if self._without_filters is None:
            self._without_filters = self._filters_off()
        ended = _run([*self._without_filters, *_OFF, "diff", *PLAIN_DIFF, *words], self._folder, b"")
        if ended.status:
            raise LintfitError(f"git diff: {_reason(ended)}")
        return ended.out

    def _filters_off(self) -> tuple[str, ...]:
        """Options under which no driver that a config names filters anything."""
        found = self.ask("config", "--null", "--name-only", "--get-regexp", _FILTERS, allowed=(0, 1))
        drivers = {name[len("filter.") :].rpartition(".")[0] for name in os.fsdecode(found).split("\0") if name}
        options: list[str] = []
        for driver in sorted(drivers):
            if "=" in driver:  # git takes an option apart at its first one
                raise LintfitError("a filter whose name has a = cannot be turned off: rename it in the config of git")
            for key, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")):
                options += ["-c", f"filter.{driver}.{key}={value}"]
        return tuple(options)


_SAID = {
    "not a git repository": "this is not a git repository",
    "dubious ownership": "the repository is another user's (safe.directory in the config of git)",
    "this operation must be run in a work tree": "the repository has no working tree here",
    "no merge base": "there is no commit that both have in common",
    "unknown revision": "it knows no such commit",
    "bad revision": "it knows no such commit",
    "Not a valid object name": "it knows no such commit",
}
"""What git complains about, in words of lintfit's own. Its own words quote whatever the repository makes it read: a
``packed-refs`` or a config that is a link shows lines of any file."""


def _reason(ended: Ended) -> str:
    """What git complains about."""
    found = next((own for said, own in _SAID.items() if said in ended.complaint), None)
    return found or f"ended with status {ended.status} (git status tells more)"


def _run(words: Sequence[str], folder: Path, stdin: bytes) -> Ended:
    environment = {**os.environ, **_ENVIRONMENT}
    return run(["git", *words], folder, PATIENCE, MAX_ANSWER, stdin=stdin, environment=environment)
