"""What was asked of the file system, with the answers.

The door (:mod:`.door`) and what follows links (:mod:`.paths`) note every question here while somebody watches: what was
opened, looked for in vain, listed, and where links lead. A report that was made from these answers holds as long as
every question is answered as it was then (:mod:`.unchanged`); times are never taken for contents.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

Answers = dict[str, dict[str, str]]
"""By the kind of a question: the answer for each path. All of it goes into JSON as it is."""

NOTHING = "-"
"""The answer where there is nothing, as far as can be seen."""


class Seen:
    """The questions of one process. ``spoiled`` says why they do not tell all that its result hangs on."""

    def __init__(self) -> None:
        self.answers: Answers = {}
        self.spoiled = ""
        self.direct: set[str] = set()
        """Files that were read for something else than a workspace, which knows who asked it."""
        self.other: dict[str, str] = {}
        """Files that a workspace has read, by the names that it read them under: where those lead, if elsewhere."""

    def note(self, question: str, path: object, answer: str) -> None:
        """Note an answer; two that differ come of a file that has changed meanwhile."""
        try:
            name = os.fspath(path)  # type: ignore[call-overload]
        except TypeError:
            self.spoiled = f"{question}: no path"
            return
        if reading_for is None and question[:5] == "read ":
            self.direct.add(name)
        elif reading_for and reading_for != name:
            self.other[name] = reading_for
        known = self.answers.setdefault(question, {}).setdefault(name, answer)
        if known != answer:
            self.spoiled = f"{name}: has changed meanwhile"


reading_for: str | None = None
"""The file that a workspace reads just now, by where it leads; empty for what is asked anew each time."""

watching: Seen | None = None
"""Who watches this process; nobody, as a rule."""


def watch() -> Seen:
    """Note everything from now on. Asked for before anything is read: what is remembered is not asked for again."""
    global watching
    watching = Seen()
    return watching


def note(question: str, path: object, answer: str) -> None:
    """Note an answer, where somebody watches."""
    if watching is not None:
        watching.note(question, path, answer)


def spoil(why: str) -> None:
    """Say that the result hangs on what is no file: another program, a pipe."""
    if watching is not None:
        watching.spoiled = why


def letter(mode: int) -> str:
    """What a mode says that there is, in one letter."""
    return "f" if stat.S_ISREG(mode) else "d" if stat.S_ISDIR(mode) else "l" if stat.S_ISLNK(mode) else "o"


def followed(path: str | os.PathLike[str]) -> str:
    """What a path leads to, links followed."""
    try:
        return letter(os.stat(path).st_mode)
    except (OSError, ValueError):  # a folder that may not be searched; no name of a file
        return NOTHING


def lies(path: str | os.PathLike[str]) -> str:
    """What has this name, a link itself too."""
    try:
        return letter(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return NOTHING


def digest(data: bytes) -> str:
    """What tells one content from another."""
    try:
        from _blake2 import blake2b  # hashlib loads OpenSSL, which takes as long as all else of a warm check
    except ImportError:
        from hashlib import blake2b

    return blake2b(data, digest_size=20).hexdigest()


def content(data: bytes, mode: int) -> str:
    """The answer where a file was opened."""
    return f"{mode:o} {digest(data)}"


def failure(error: OSError | ValueError) -> str:
    """The answer where a file could not be opened, or a folder not be listed."""
    return f"error {getattr(error, 'errno', None) or 0}"


def names(folders: Iterable[str], files: Iterable[str]) -> str:
    """The answer where a folder was listed: its folders, and what else it holds, in any order."""
    both = "\0".join(sorted(folders)) + "\0\0" + "\0".join(sorted(files))
    return digest(both.encode("utf-8", "surrogatepass"))


def state(found: os.stat_result) -> str:
    """The answer where it was asked what tells a file from what it was before."""
    return f"{found.st_mode} {found.st_size} {found.st_mtime_ns} {found.st_ino}"
