"""The one door to the file system: whatever lintfit opens, lists or looks for, it does here.

What is opened is a regular file of no more than the bytes that its kind may have (those of documents: :mod:`.limits`):
never a pipe that nobody fills, a device without end, or gigabytes of something else. Where a path leads, and whether
that is below a folder, says :mod:`.paths`; the files of one invocation, each read once, are a workspace's.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

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
    _regular(path.stat())
    # Without waiting for whoever writes into a named pipe that has just taken the file's place.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        mode = _regular(os.fstat(descriptor))
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB")
    return data, mode


def _regular(found: os.stat_result) -> int:
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, "is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")
    return found.st_mode


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
    with path.open("rb") as file:
        return file.read(most)


def is_file(path: Path) -> bool:
    """Whether there is a file, as far as can be seen."""
    return _seen(path.is_file)


def is_folder(path: Path) -> bool:
    """Whether there is a folder, as far as can be seen."""
    return _seen(path.is_dir)


def is_real_folder(path: Path) -> bool:
    """Whether there is a folder, and not a link to one, as far as can be seen."""
    return _seen(path.is_dir) and not _seen(path.is_symlink)


def exists(path: Path) -> bool:
    """Whether a path leads to anything, as far as can be seen."""
    return _seen(path.exists)


def _seen(test: Callable[[], bool]) -> bool:
    try:
        return test()
    except (OSError, ValueError):  # a folder that may not be searched; no name of a file
        return False


def is_there(path: Path) -> bool:
    """Whether anything has this name, a link that leads nowhere too."""
    return os.path.lexists(path)


def repository_of(folder: Path) -> Path | None:
    """The nearest folder, from this one up, that is under version control."""
    above = (folder, *folder.parents)
    return next((each for each in above if any(is_there(each / name) for name in _VERSION_CONTROL)), None)


def is_link(path: Path) -> bool:
    """Whether this name is a symbolic link."""
    return path.is_symlink()


def is_listable(path: Path) -> bool:
    """Whether there is a folder. Raises OSError for one that may not be listed, which :func:`walk` passes over."""
    if not path.is_dir():
        return False
    os.scandir(path).close()
    return True


def state(path: Path) -> os.stat_result:
    """What tells a file from what it was before. Raises OSError where there is none, ValueError for no name of one."""
    return path.stat()


def listed(folder: Path, most: int | None = None) -> list[Path]:
    """What a folder holds, in no order. Raises OSError for one that cannot be listed."""
    return list(islice(folder.iterdir(), most))


def matching(folder: Path, pattern: str) -> Iterator[Path]:
    """The paths below a folder that a pattern fits, in no order."""
    return folder.glob(pattern)


def walk(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Every folder from this one down with the names of its folders and files; those taken out of the list of folders
    are not entered."""
    for here, folders, names in os.walk(folder):
        yield Path(here), folders, names
