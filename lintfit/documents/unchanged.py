"""Whether what was asked of the file system (:mod:`.seen`) would be answered alike now."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.documents import door, paths
from lintfit.documents.seen import NOTHING, followed, lies

MOST_CHANGED = 200
"""Files that may have changed; where more have, it is as good as another tree."""


def changed(answers: Mapping[str, Mapping[str, str]], most: int = MOST_CHANGED) -> dict[str, dict[str, str]] | None:
    """The files that hold something else now, by question with the answers of now; None where any other question has
    another answer, or too many files have changed. Raises whatever broken answers make go wrong."""
    look = _Look()
    found: dict[str, dict[str, str]] = {}
    for question, known in answers.items():
        kind, _, limit = question.partition(" ")
        match kind:
            case "lies":
                same = all(look.lies(path) == answer for path, answer in known.items())
            case "followed":
                same = all(look.followed(path) == answer for path, answer in known.items())
            case "leads":
                same = all(look.leads(path, answer) or paths.led(path) == answer for path, answer in known.items())
            case "read":
                others = _others(known, int(limit), most)
                same = others is not None
                if others:
                    found[question] = others
            case "listed":
                same = all(door.names_of(path) == answer for path, answer in known.items())
            case "state":
                same = all(door.state_of(path) == answer for path, answer in known.items())
            case _:
                return None
        if not same or sum(map(len, found.values())) > most:
            return None
    return found


def _others(known: Mapping[str, str], limit: int, most: int) -> dict[str, str] | None:
    """The files that hold something else, with what they hold now; None where one came or went, or are too many."""
    found: dict[str, str] = {}
    for path, answer in known.items():
        now = door.answer_of(path, limit)
        if now == answer:
            continue
        if len(found) == most or "error" in (now[:5], answer[:5]):
            return None
        found[path] = now
    return found


class _Look:
    """What lies where now, each name asked for once: thousands of paths stand in some dozens of folders."""

    def __init__(self) -> None:
        self._lies: dict[str, str] = {}
        self._straight: dict[str, str | None] = {"/": "/", "": paths.led("")}
        """Where paths lead through which no link leads; None for others."""

    def lies(self, path: str) -> str:
        found = self._lies.get(path)
        if found is None:
            above, _, name = path.rpartition("/")
            # Nothing lies below what is not there.
            gone = above and name and self._lies.get(above) == NOTHING
            found = self._lies[path] = NOTHING if gone else lies(path)
        return found

    def followed(self, path: str) -> str:
        found = self.lies(path)
        return followed(path) if found == "l" else found

    def leads(self, path: str, answer: str) -> bool:
        """Whether a path leads where the answer says; False says nothing."""
        return self._leads_straight(path) == answer

    def _leads_straight(self, path: str) -> str | None:
        """Where a path leads, ``.`` and ``..`` followed: without links the words of it tell."""
        if path not in self._straight:
            above, slash, name = path.rpartition("/")
            folder = self._leads_straight(above or slash)
            self._straight[path] = None if folder is None else self._below(folder, name)
        return self._straight[path]

    def _below(self, folder: str, name: str) -> str | None:
        """The same for a name in a folder to which no link leads."""
        if name in ("", "."):
            return folder
        if name == "..":
            return folder.rpartition("/")[0] or "/"
        found = f"{folder.rstrip('/')}/{name}"
        return None if self.lies(found) == "l" else found
