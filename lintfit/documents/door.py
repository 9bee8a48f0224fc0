"""The one door to the file system: whatever lintfit opens, lists or looks for, it does here.

What is opened is a regular file of no more than the bytes that its kind may have (those of documents: :mod:`.limits`):
never a pipe that nobody fills, a device without end, or gigabytes of something else. Where a path leads, and whether
that is below a folder, says :mod:`.paths`; the files of one invocation, each read once, are a workspace's.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from lintfit.documents import seen

MAX_CONFIG = 1 << 20
"""Bytes of a config of lintfit's own, or of another tool's that says how wide lines may get: the largest are of some
100 KiB, and tomllib takes five seconds for a MiB of the worst that it may hold."""

MAX_MODEL_CONFIG = 8 << 20
"""Configs of published models are a few KiB; some with many ``id2label`` entries reach 1 MiB."""

MAX_NAMED_CONFIG = 16 << 20
"""Bytes of a config that a flag names."""

MAX_REQUIREMENTS = 8 << 20
"""Bytes of a file of requirements: lock files are large, of big projects 1 to 2 MiB."""

MAX_BASELINE = 64 << 20
"""Bytes of a baseline."""

MAX_SPECS = 64 << 20
"""Bytes of a file of specs: thousands of them with a whole config.json each."""

_VERSION_CONTROL = (".git", ".hg", ".svn")


def opened(path: Path, most: int) -> tuple[bytes, int]:
    """The bytes and the mode of a regular file of at most ``most`` bytes.

    Raises OSError for any other, with a ``strerror`` to show (EISDIR for a folder, EFBIG for a larger one), and
    ValueError for a path that cannot name a file.
    """
    try:
        data, mode = _opened(path, most)
    except (OSError, ValueError) as error:
        seen.note(f"read {most}", path, seen.failure(error))
        raise
    if seen.watching is not None:
        seen.note(f"read {most}", path, seen.content(data, mode))
    return data, mode


def answer_of(path: str, most: int) -> str:
    """What opening a file comes to now, as it is noted."""
    try:
        return seen.content(*_opened(path, most))
    except (OSError, ValueError) as error:
        return seen.failure(error)


def _opened(path: Path | str, most: int) -> tuple[bytes, int]:
    _regular(os.stat(path))
    # Without waiting for whoever writes into a named pipe that has just taken the file's place.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = _regular(os.fstat(descriptor))
        # As much as there should be: for ``most`` bytes, Python would make room first.
        data = file.read(min(found.st_size, most) + 1)
        if found.st_size < len(data) <= most:  # it grows, or is one of those that have no size
            data += file.read(most + 1 - len(data))
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB")
    return data, found.st_mode


def _regular(found: os.stat_result) -> os.stat_result:
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, "is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")
    return found


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a regular file of at most ``most`` bytes.

    Raises OSError for any other, with a ``strerror`` to show; so it does for a path that cannot name a file.
    """
    try:
        return opened(path, most)[0]
    except ValueError:
        raise OSError(errno.EINVAL, "its name holds a character that no file's name has") from None


def read_stream(path: Path, most: int) -> bytes:
    """What comes out of a file or pipe that the user names (``<(command)``), and no more than ``most`` bytes of it."""
    seen.spoil("a stream can be read once")
    with path.open("rb") as file:
        return file.read(most)


def _followed(path: Path) -> str:
    found = seen.followed(path)
    seen.note("followed", path, found)
    return found


def _lies(path: Path) -> str:
    found = seen.lies(path)
    seen.note("lies", path, found)
    return found


def is_file(path: Path) -> bool:
    """Whether there is a file, as far as can be seen."""
    return _followed(path) == "f"


def is_folder(path: Path) -> bool:
    """Whether there is a folder, as far as can be seen."""
    return _followed(path) == "d"


def is_real_folder(path: Path) -> bool:
    """Whether there is a folder, and not a link to one, as far as can be seen."""
    return _followed(path) == "d" and _lies(path) != "l"


def exists(path: Path) -> bool:
    """Whether a path leads to anything, as far as can be seen."""
    return _followed(path) != seen.NOTHING


def is_there(path: Path) -> bool:
    """Whether anything has this name, a link that leads nowhere too."""
    return _lies(path) != seen.NOTHING


def repository_of(folder: Path) -> Path | None:
    """The nearest folder, from this one up, that is under version control."""
    above = (folder, *folder.parents)
    return next((each for each in above if any(is_there(each / name) for name in _VERSION_CONTROL)), None)


def is_link(path: Path) -> bool:
    """Whether this name is a symbolic link."""
    return _lies(path) == "l"


def is_listable(path: Path) -> bool:
    """Whether there is a folder. Raises OSError for one that may not be listed, which :func:`walk` passes over."""
    if not is_folder(path):
        return False
    if seen.watching is not None:
        seen.note("listed", path, names_of(path))
    os.scandir(path).close()
    return True


def state(path: Path) -> os.stat_result:
    """What tells a file from what it was before. Raises OSError where there is none, ValueError for no name of one."""
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        seen.note("state", path, seen.failure(error))
        raise
    seen.note("state", path, seen.state(found))
    return found


def state_of(path: str) -> str:
    """What tells a file from what it was before, as it is noted."""
    try:
        return seen.state(os.stat(path))
    except (OSError, ValueError) as error:
        return seen.failure(error)


def listed(folder: Path, most: int | None = None) -> list[Path]:
    """What a folder holds, in no order. Raises OSError for one that cannot be listed."""
    if seen.watching is not None:
        seen.note("listed", folder, names_of(folder))
    return list(islice(folder.iterdir(), most))


def names_of(folder: str | Path) -> str:
    """What a folder holds, as it is noted."""
    try:
        folders, files = _split(folder)
    except (OSError, ValueError) as error:
        return seen.failure(error)
    return seen.names(folders, files)


def _split(folder: str | Path) -> tuple[list[str], list[str]]:
    """The names of the folders in a folder, links to them too, and those of all else; as ``os.walk`` tells them."""
    folders: list[str] = []
    files: list[str] = []
    with os.scandir(folder) as found:
        for each in found:
            try:
                is_folder = each.is_dir()
            except OSError:
                is_folder = False
            (folders if is_folder else files).append(each.name)
    return folders, files


def names_in(folder: Path) -> list[str]:
    """What a folder holds, in no order; nothing where it cannot be looked into."""
    try:
        folders, files = _split(folder)
    except OSError as error:
        seen.note("listed", folder, seen.failure(error))
        return []
    if seen.watching is not None:
        seen.note("listed", folder, seen.names(folders, files))
    return [*folders, *files]


def matching(folder: Path, pattern: str) -> Iterator[Path]:
    """The paths below a folder that a pattern fits, in no order: ``*``, ``?`` and ``[…]`` within a name, and a slash at
    the end for folders alone. What cannot be looked into holds nothing."""
    parts = [part for part in pattern.split("/") if part]
    return _matching(folder, parts, folders_alone=pattern.endswith("/"))


def _matching(folder: Path, parts: list[str], *, folders_alone: bool) -> Iterator[Path]:
    if not parts:
        if not folders_alone or is_folder(folder):
            yield folder
        return
    first, *rest = parts
    if not _MAGIC.search(first):
        if is_folder(folder / first) if rest or folders_alone else exists(folder / first):
            yield from _matching(folder / first, rest, folders_alone=folders_alone)
        return
    if not is_folder(folder):
        return
    fits = _name_pattern(first)
    note = seen.watching is not None
    try:
        folders, files = _split(folder)
    except OSError as error:
        seen.note("listed", folder, seen.failure(error))
        return
    if note:
        seen.note("listed", folder, seen.names(folders, files))
    for name in folders if rest or folders_alone else (*folders, *files):
        if fits.fullmatch(name):
            yield from _matching(folder / name, rest, folders_alone=folders_alone)


_MAGIC = re.compile(r"[*?\[]")


@cache
def _name_pattern(pattern: str) -> re.Pattern[str]:
    import fnmatch

    return re.compile(fnmatch.translate(pattern))


def walk(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Every folder from this one down with the names of its folders and files; those taken out of the list of folders
    are not entered."""

    waiting = [folder]  # os.walk of Python 3.11 calls itself for each folder, and hundreds may lie in one another
    while waiting:
        here = waiting.pop()
        folders: list[str] = []
        names: list[str] = []
        links: set[str] = set()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    (folders if _leads_to_folder(entry) else names).append(entry.name)
                    if entry.is_symlink():
                        links.add(entry.name)
        except OSError as error:
            seen.note("listed", error.filename, seen.failure(error))
            continue
        if seen.watching is not None:
            seen.note("listed", str(here), seen.names(folders, names))
        yield here, folders, names
        waiting += (here / name for name in reversed(folders) if name not in links)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
