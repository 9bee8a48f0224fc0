"""What ``.gitignore`` files keep out of a search of a folder: virtual environments, downloads, what runs have written.

Read are those of the folder, of the folders below it and of those above it up to the root of the repository, and the
repository's ``.git/info/exclude``; not a user's own file of patterns, which is another one on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from lintfit.documents.door import is_folder, is_link, is_there, read_regular
from lintfit.documents.globs import LONGEST, Pattern, compiled, names_of
from lintfit.documents.paths import resolved
from lintfit.frozen import frozen

NAME = ".gitignore"
LARGEST = 2**17
"""Bytes of a file of patterns that is still read."""
MOST = 800
"""Lines of a file that are heeded, and of the files of the folders above beyond which none is read: GitHub's longest
template has some 400."""


@frozen(eq=False)
class Line:
    """A line of such a file: ``include`` is False where it brings back what others ignore, ``folders`` where it speaks
    of folders alone."""

    pattern: Pattern
    include: bool
    folders: bool


@frozen(eq=False)
class Lines:
    """The lines of a file of patterns, with the folder that it is of. ``names``: what an entry may be called that one
    of them speaks of; most entries of a tree are none of them."""

    base: Path
    lines: tuple[Line, ...]
    names: re.Pattern[str]


@frozen(eq=False)
class Ignored:
    """What is ignored in one folder: the patterns of its files, the farthest first, each with the folder it is of."""

    folder: Path
    files: tuple[Lines, ...]

    def has(self, name: str, *, is_folder: bool) -> bool:
        """Whether an entry of the folder is ignored: the last pattern of the nearest file that names it decides."""
        for own in reversed(self.files):
            if own.names.fullmatch(name) is None:
                continue
            parts = (self.folder / name).relative_to(own.base).parts
            for line in reversed(own.lines):
                if (is_folder or not line.folders) and line.pattern.matches(parts):
                    return line.include
        return False

    def below(self, name: str, holds: Collection[str] | None = None) -> Ignored:
        """The same for a folder in this one; a repository of its own goes by its own files.

        ``holds`` are the names in it, where they are known: of most folders nothing has to be asked.
        """
        folder = self.folder / name
        if holds is not None and NAME not in holds and ".git" not in holds:
            return Ignored(folder, self.files)
        above = () if is_there(folder / ".git") else self.files
        own = _files_of(folder) if sum(len(each.lines) for each in above) < MOST else ()
        return Ignored(folder, (*above, *own))


def ignored_in(folder: Path) -> Ignored:
    """What is ignored in a folder that the user names; it is itself searched, also where it is ignored as a whole."""
    here = resolved(folder)
    root = next((each for each in (here, *here.parents) if is_there(each / ".git")), here)
    found = Ignored(root, _files_of(root))
    for name in here.relative_to(root).parts:
        if found.has(name, is_folder=True):
            return Ignored(here, _files_of(here))
        found = found.below(name)
    return found


def is_ignored(path: Path, top: Path) -> bool:
    """Whether a path in a tree, which need not be there, is ignored, itself or by a folder that it leads through."""
    if not path.is_relative_to(top):
        return False
    found, parts = ignored_in(top), path.relative_to(top).parts
    there = True
    for index, name in enumerate(parts):
        if found.has(name, is_folder=index < len(parts) - 1):
            return True
        there = there and is_folder(found.folder / name)
        found = found.below(name, None if there else ())  # below what is not there lie no patterns
    return False


def _files_of(folder: Path) -> tuple[Lines, ...]:
    paths = (folder / ".git" / "info" / "exclude", folder / NAME)
    read = [lines for path in paths if (lines := _read(path))]
    return tuple([Lines(folder, lines, names_of([line.pattern for line in lines])) for lines in read])


def _read(path: Path) -> tuple[Line, ...]:
    """The patterns of a file. A link is not followed: git does not do so either, and it may lead anywhere."""
    try:
        if resolved(path.parent) != path.parent or is_link(path):
            return ()
        text = read_regular(path, LARGEST).decode("utf-8", errors="replace")
    except OSError:
        return ()
    lines = (_line(line) for line in text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"))
    return tuple(islice((line for line in lines if line is not None), MOST))


def _line(text: str) -> Line | None:
    """A line as a pattern; None for one that is a comment, blank, or none that could match."""
    if text.startswith("#"):
        return None
    kept = text.rstrip(" ")
    if len(kept) < len(text) and len(kept) - len(kept.rstrip("\\")) & 1:
        kept += " "  # the first blank is escaped
    include = not kept.startswith("!")
    body = kept if include else kept[1:]
    folders = body.endswith("/")
    body = body[:-1] if folders else body
    anchored = "/" in body
    body = body.removeprefix("/")
    if not body or len(body) > LONGEST:
        return None
    return Line(compiled(body, anchored, full=True), include, folders)
