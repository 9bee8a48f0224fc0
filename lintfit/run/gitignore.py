"""What ``.gitignore`` files keep out of a search of a folder: virtual environments, downloads, what runs have written.

Read are those of the folder, of the folders below it and of those above it up to the root of the repository, and the
repository's ``.git/info/exclude``; not a user's own file of patterns, which is another one on every machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents.regular import read_regular
from lintfit.frozen import frozen

if TYPE_CHECKING:
    from pathspec.pattern import Pattern

NAME = ".gitignore"
LARGEST = 2**17
"""Bytes of a file of patterns that is still read."""
_MOST_WILDCARDS = 4
"""Runs of ``*`` in a pattern that is still heeded: more may take a regular expression hours, and hardly any has two."""


@frozen(eq=False)
class Ignored:
    """What is ignored in one folder: the patterns of its files, the farthest first, each with the folder it is of."""

    folder: Path
    files: tuple[tuple[Path, tuple[Pattern, ...]], ...]

    def has(self, name: str, *, is_folder: bool) -> bool:
        """Whether an entry of the folder is ignored: the last pattern of the nearest file that names it decides."""
        for base, patterns in reversed(self.files):
            path = (self.folder / name).relative_to(base).as_posix() + ("/" if is_folder else "")
            for pattern in reversed(patterns):
                if pattern.include is not None and _names(pattern, path):
                    return pattern.include
        return False

    def below(self, name: str) -> Ignored:
        """The same for a folder in this one; a repository of its own goes by its own files."""
        folder = self.folder / name
        above = () if os.path.lexists(folder / ".git") else self.files
        return Ignored(folder, (*above, *_files_of(folder)))


def ignored_in(folder: Path) -> Ignored:
    """What is ignored in a folder that the user names; it is itself searched, also where it is ignored as a whole."""
    here = Path(os.path.realpath(folder))
    root = next((each for each in (here, *here.parents) if os.path.lexists(each / ".git")), here)
    found = Ignored(root, _files_of(root))
    for name in here.relative_to(root).parts:
        if found.has(name, is_folder=True):
            return Ignored(here, _files_of(here))
        found = found.below(name)
    return found


def _names(pattern: Pattern, path: str) -> bool:
    """Whether a pattern names this entry, not only a folder above it.

    pathspec's expressions also match all that is below what they name, and mark where its name ends by their one group.
    But ``!*/`` brings back folders, not the files in them, and ``a/**`` names what is in a folder, not the folder.
    """
    regex = getattr(pattern, "regex", None)
    for match in regex.finditer(path) if regex is not None else ():
        if match.lastindex is None:
            return not (path.endswith("/") and match.end() == len(path))
        if match.end(match.lastindex) == len(path):
            return True
    return False


def _files_of(folder: Path) -> tuple[tuple[Path, tuple[Pattern, ...]], ...]:
    paths = (folder / ".git" / "info" / "exclude", folder / NAME)
    return tuple([(folder, patterns) for path in paths if (patterns := _read(path))])


def _read(path: Path) -> tuple[Pattern, ...]:
    """The patterns of a file. A link is not followed: git does not do so either, and it may lead anywhere."""
    try:
        if os.path.realpath(path.parent) != str(path.parent) or path.is_symlink():
            return ()
        text = read_regular(path, LARGEST).decode("utf-8", errors="replace")
    except OSError:
        return ()
    return tuple(_compiled([line for line in text.removeprefix("\ufeff").splitlines() if _heeded(line)]))


def _heeded(line: str) -> bool:
    wanted = bool(line.strip()) and not line.startswith("#")
    return wanted and len(re.findall(r"\*+", line)) <= _MOST_WILDCARDS


def _compiled(lines: list[str]) -> Iterator[Pattern]:
    """Each line by itself: git passes over the ones that are no patterns (``!``), pathspec stops at them."""
    if not lines:
        return
    from pathspec import GitIgnoreSpec

    for line in lines:
        with suppress(ValueError):
            yield from GitIgnoreSpec.from_lines([line]).patterns
