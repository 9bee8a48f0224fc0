"""Whether what was asked of the file system (:mod:`.seen`) would be answered alike now."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.documents import door, paths
from lintfit.documents.seen import NOTHING, followed, lies


def holds(answers: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether every question has the answer that it had. Raises whatever broken answers make go wrong."""
    look = _Look()
    for question, known in answers.items():
        kind, _, most = question.partition(" ")
        match kind:
            case "lies":
                same = all(look.lies(path) == answer for path, answer in known.items())
            case "followed":
                same = all(look.followed(path) == answer for path, answer in known.items())
            case "leads":
                same = all(look.leads(path, answer) or paths.led(path) == answer for path, answer in known.items())
            case "read":
                limit = int(most)
                same = all(door.answer_of(path, limit) == answer for path, answer in known.items())
            case "listed":
                same = all(door.names_of(path) == answer for path, answer in known.items())
            case "state":
                same = all(door.state_of(path) == answer for path, answer in known.items())
            case _:
                return False
        if not same:
            return False
    return True


class _Look:
    """What lies where now, each name asked for once: thousands of paths stand in some dozens of folders."""

    def __init__(self) -> None:
        self._lies: dict[str, str] = {}
        self._plain: dict[str, bool] = {"/": True, "": False}
        """Folders that no link leads to, nor through."""

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
        """Whether a path leads to itself, as the answer says it does; False says nothing."""
        return path == answer and self._is_plain(path)

    def _is_plain(self, path: str) -> bool:
        found = self._plain.get(path)
        if found is None:
            above, slash, name = path.rpartition("/")
            ordinary = bool(slash) and name not in ("", ".", "..")
            found = ordinary and self._is_plain(above or "/") and self.lies(path) != "l"
            self._plain[path] = found
        return found
