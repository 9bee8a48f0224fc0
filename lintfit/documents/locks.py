"""One lock for each tree: who holds it has read its files, decides, and writes; nobody else writes below.

The lock files are empty and lie in a folder of the user's own for temporary files, never in a tree; they are named by
the folder that they stand for. A tree is held alone, the folders above it together with others: so do two trees of
which one lies in the other shut each other out.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from lintfit.errors import LintfitError

PATIENCE = 10.0
"""Seconds that a second process waits for the first."""
_PAUSE = 0.05


def _fcntl() -> Any:
    try:
        return import_module("fcntl")
    except ImportError:  # Windows
        return None


@contextmanager
def locked(trees: Iterable[Path]) -> Iterator[None]:
    """Hold the locks of some folders (resolved) and wait for them a while.

    Raises LintfitError where another process keeps one for longer, or where no lock can be had at all.
    """
    until = time.monotonic() + PATIENCE
    with ExitStack() as held:
        for folder, alone in _wanted(set(trees)):
            held.enter_context(_lock(folder, alone, until))
        yield


def _wanted(trees: set[Path]) -> list[tuple[Path, bool]]:
    """The folders to lock and whether alone, those above first: an order that all keep, so that none wait in a ring."""
    above = {folder for tree in trees for folder in tree.parents} if _fcntl() is not None else set()
    return [(folder, folder in trees) for folder in sorted(trees | above)]


@contextmanager
def _lock(folder: Path, alone: bool, until: float) -> Iterator[None]:
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
    file = _place() / f"{name}.lock"
    try:
        descriptor = _taken(file, alone)
        while descriptor is None:
            if time.monotonic() >= until:
                raise LintfitError(f"another lintfit is fixing files below {folder}; try again when it is done")
            time.sleep(_PAUSE)
            descriptor = _taken(file, alone)
    except OSError as error:
        raise _cannot(file, error) from None
    try:
        yield
    finally:
        os.close(descriptor)
        if _fcntl() is None:
            with suppress(OSError):
                file.unlink(missing_ok=True)


def _taken(file: Path, alone: bool) -> int | None:
    """The open lock; None where another has it. A process that dies leaves it."""
    fcntl = _fcntl()
    if fcntl is None:
        # The file itself is the lock. Windows takes it away with the process that has it open.
        with suppress(FileExistsError, PermissionError):
            return os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_TEMPORARY", 0), 0o600)
        return None
    descriptor = os.open(file, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _place() -> Path:
    """The user's own folder of locks, which nobody else may write into."""
    user = os.getuid() if hasattr(os, "getuid") else None
    place = Path(tempfile.gettempdir()) / ("lintfit-locks" if user is None else f"lintfit-locks-{user}")
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        status = place.lstat()
    except OSError as error:
        raise _cannot(place, error) from None
    own = user is None or (status.st_uid == user and not status.st_mode & 0o022)
    if not stat.S_ISDIR(status.st_mode) or not own:
        raise LintfitError(
            f"{place}: is not a folder of your own, where lintfit keeps its locks; remove it or set TMPDIR"
        )
    return place


def _cannot(place: Path, error: OSError) -> LintfitError:
    reason = (error.strerror or str(error)).lower()
    return LintfitError(f"{place}: cannot keep others from writing meanwhile: {reason}; set TMPDIR to another folder")
