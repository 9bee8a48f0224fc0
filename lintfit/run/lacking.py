"""The files that a run names and that were not read: not there, not readable, or not to be parsed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from lintfit.documents.model import Document
from lintfit.run.model import UNPARSED, UNREADABLE
from lintfit.settings.model import Place

if TYPE_CHECKING:
    from lintfit.documents.files import ReadError
    from lintfit.run.locate import Locator
    from lintfit.run.missing import Missing
    from lintfit.sources.launchers.launch import Launch

SCRIPT = "the script that is launched"
_CONFIG_FLAGS = frozenset(("cfg", "config", "config_file", "config_path"))
_DATA = (".json", ".yaml", ".yml", ".toml")


class Lacking:
    """What a run lacks, noted while its files are looked for."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator
        self._missing: list[Missing] = []
        self._broken: list[tuple[str, Document]] = []
        """Files that cannot be parsed, with what they are to the run."""
        self._unread: list[str] = []
        """What is said of files that are there and cannot be read."""
        self._known: Missing | None = None
        """A script that is not there, but that is known all the same."""

    def lack(self, what: str, name: str, place: Place | None) -> None:
        """Note a file that is named and not there."""
        from lintfit.run.missing import missing

        script = next((each for each in self._missing if each.what == SCRIPT), self._known)
        if not any(each.name == name and each.what == what for each in self._missing):
            self._missing.append(missing(what, name, place, self._locator, script))

    def know(self, script: Missing) -> None:
        """Note a script that is not there and that the run does not lack: it is a library's example."""
        self._known = script

    def cannot_parse(self, what: str, document: Document) -> None:
        """Note a file that is there and cannot be parsed."""
        if not any(document is known for _, known in self._broken):
            self._broken.append((what, document))

    def cannot_read(self, what: str, error: ReadError) -> None:
        """Note a file that is there and of which nobody has the text (Git LFS has not brought it, it is binary)."""
        reason = f"{what} ({error.path.name}{UNREADABLE}{error.reason})"
        if reason not in self._unread:
            self._unread.append(reason)

    @property
    def missing(self) -> tuple[Missing, ...]:
        return tuple(self._missing)

    @property
    def broken(self) -> tuple[Document, ...]:
        return tuple(document for _, document in self._broken)

    def reasons(self) -> list[str]:
        """Why there is no estimate: what nobody has read is not filled in with a guess."""
        broken = [f"{what} ({document.path.name}{UNPARSED}" for what, document in self._broken]
        return [*(each.reason for each in self._missing), *broken, *self._unread]


def named_recipes(launch: Launch) -> Iterator[tuple[str, Place]]:
    """The files that a front end is handed as its recipe; a name without a suffix is one of its own."""
    for flag in launch.flags:
        if flag.name == "config" and flag.value is not None and flag.value.endswith(_DATA):
            yield flag.value, flag.origin
    first = launch.invocation.positional[:1]
    if first and first[0].value is not None and first[0].value.endswith(_DATA):
        yield first[0].value, Place(launch.document, first[0].span)


def handed(launch: Launch | None, name: str) -> Place | None:
    """Where a launch line names a config for its script: as a flag that says so, or as a word of its own."""
    if launch is None:
        return None
    flags = (flag.origin for flag in launch.flags if flag.name in _CONFIG_FLAGS and flag.value == name)
    words = (Place(launch.document, word.span) for word in launch.invocation.positional if word.value == name)
    return next(chain(flags, words), None)
