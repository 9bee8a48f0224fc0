"""Reports of earlier checks, kept in the user's cache folder: what ``lintfit check`` printed, and from what.

An entry stands under a digest of all that decides a report beside files: lintfit itself and what it stands on, the
command line, the working directory, the environment that it reads and the streams that it prints to. It holds every
question that the check asked of the file system with its answer (:mod:`lintfit.documents.seen`), by content; it is
shown where all are answered alike now, and is as good as none otherwise. Nothing of the checked tree is trusted: the
folder is the user's own (0700), outside of what is checked, and an entry is JSON that is looked through before it is
taken. Wherever anything is odd there is no cache, and nobody hears of it.

This module and what it imports is all that a warm check loads: no parser, no command line library.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from lintfit.documents import seen
from lintfit.documents.unchanged import changed

if TYPE_CHECKING:
    from lintfit.options.model import Options

OFF = "LINTFIT_NO_CACHE"
FLAG = "--no-cache"
FORM = 2
"""Of an entry; another form is not read."""
MOST_BYTES = 16 << 20
"""Of one entry; larger ones are neither kept nor read. DeepSpeedExamples takes 2 MiB."""
MOST_OF_PARTS = 32 << 20
MOST_IN_ALL = 128 << 20
MOST_FILES = 400
FRESH = 2.0
"""Seconds in which a file of lintfit's own may have changed twice without another time or size: file systems count in
steps of up to two seconds (FAT)."""

FAMILIES = ("LINTFIT_", "HF_", "HUGGINGFACE_", "SLURM_", "LC_", "GIT_", "CUDA_", "ROCR_", "HIP_")
NAMES = frozenset(
    {
        *(
            "HOME",
            "USERPROFILE",
            "XDG_CACHE_HOME",
            "LOCALAPPDATA",
            "VIRTUAL_ENV",
            "PATH",
            "PATHEXT",
            "LANG",
            "LANGUAGE",
        ),
        *("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TERM", "COLUMNS", "LINES", "GITHUB_BASE_REF"),
        *("PYTHONPATH", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING"),
    }
)
"""What lintfit reads of the environment; ``tests/cli/test_cache.py`` looks for others."""


def find(arguments: Sequence[str]) -> int | None:
    """Print the report that this command line had when it was last asked, and give its exit status.

    None where there is none that holds now; then what is asked of the file system is noted from here on.
    """
    if FLAG in arguments or os.environ.get(OFF) or os.environ.get("LINTFIT_DEBUG"):
        return None
    place = None
    with suppress(OSError, ValueError):
        place = _place(arguments)
    if place is None:
        return None
    entry = _read(place)
    others = _others(entry) if entry is not None else None
    if entry is not None and others is not None and not others:
        return _shown(entry)
    Recording.begun = Recording(place, _earlier(place, entry, others) if entry is not None and others else None)
    return None


def may_be_kept(options: Options) -> bool:
    """Whether a report hangs on nothing but the files and the command line, and the check writes nothing."""
    writes = options.fix or options.add_ignores is not None or options.write_baseline is not None
    asks = options.staged or options.changed_since is not None or options.stdin_filename is not None
    files = any(output.file is not None for output in options.outputs)
    return not (writes or asks or files or options.diff)


class Earlier(NamedTuple):
    """An earlier check, all of whose answers hold but for the content of a few files."""

    answers: seen.Answers
    """Those of now."""
    changed: frozenset[str]
    """The names of these files, and where they lead."""
    direct: frozenset[str]
    other: Mapping[str, str]
    place: str
    digest: str

    def parts(self) -> Mapping[str, Any] | None:
        """What it made of the parts of the tree, if that is still there."""
        with suppress(OSError, ValueError, RecursionError):
            data = _content(self.place, MOST_OF_PARTS)
            if data is not None and seen.digest(data) == self.digest:
                return json.loads(data)  # type: ignore[no-any-return]
        return None


def _earlier(place: str, entry: Mapping[str, Any], others: seen.Answers) -> Earlier | None:
    """What can be taken from an entry of which some files hold something else now; None where any of these was read
    for more than a workspace of documents: that may be remembered anywhere."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        direct, other = frozenset(map(str, entry["direct"])), dict(entry["other"])
        names = {name for found in others.values() for name in found}
        if not direct.isdisjoint(names) or not isinstance(entry["parts"], str):
            return None
        answers = {question: {**known, **others.get(question, {})} for question, known in entry["answers"].items()}
        changed = frozenset({*names, *(other.get(name, name) for name in names)})
        return Earlier(answers, changed, direct, other, _beside(place), entry["parts"])
    return None


def _beside(place: str) -> str:
    """Where the parts of an entry stand."""
    return f"{place.removesuffix('.json')}.parts"


class Recording:
    """A check under way whose report may be kept."""

    begun: Recording | None = None
    """That of this process."""

    def __init__(self, place: str, earlier: Earlier | None = None) -> None:
        self._place, self._seen, self._said = place, seen.watch(), list[tuple[int, str]]()
        self.earlier = earlier
        if earlier is not None:
            # What is taken from there is not asked for again; where a file changes once more, the answers will differ.
            self._seen.answers, self._seen.direct = earlier.answers, set(earlier.direct)
            self._seen.other = dict(earlier.other)

    @property
    def spoiled(self) -> bool:
        """Whether what was asked does not tell all that the report hangs on."""
        return bool(self._seen.spoiled)

    def say(self, stream: int, text: str) -> None:
        """Note what is printed: 1 for standard output, 2 for standard error."""
        self._said.append((stream, text))

    def keep(self, status: int, paths: Iterable[str], parts: Callable[[], Any]) -> None:
        """Keep the report; ``paths`` are what was checked, in which nothing is kept. ``parts`` gives what was made of
        the parts of the tree, as JSON has it."""
        folder = os.path.dirname(self._place)
        if self._seen.spoiled:
            return
        asked = self._seen
        entry = {"form": FORM, "status": status, "said": self._said, "answers": asked.answers}
        entry |= {"direct": sorted(asked.direct), "other": asked.other, "parts": None}
        with suppress(OSError, ValueError):
            if any(_is_below(folder, path) for path in (os.getcwd(), *paths)) or not _own_folder(folder, make=True):
                return
            beside = _as_json(parts())
            if asked.spoiled:  # by what the parts asked for once more
                return
            if len(beside) <= MOST_OF_PARTS:
                entry["parts"] = seen.digest(beside)
            data = _as_json(entry)
            if len(data) <= MOST_BYTES:
                if entry["parts"] is not None:
                    _write(_beside(self._place), beside)
                _write(self._place, data)
                _make_room(folder)


def _is_below(folder: str, path: str) -> bool:
    return os.path.commonpath((os.path.realpath(folder), top := os.path.realpath(path))) == top


def _shown(entry: Mapping[str, Any]) -> int:
    for number, text in entry["said"]:
        stream = sys.stdout if number == 1 else sys.stderr
        stream.write(text)
        stream.flush()
    return int(entry["status"])


def _read(place: str) -> Mapping[str, Any] | None:
    """The entry of a place, where it is a whole one and the user's own."""
    with suppress(OSError, ValueError, RecursionError):  # cut off, or of somebody else's making
        data = _content(place, MOST_BYTES)
        entry = json.loads(data) if data is not None else None
        return entry if _is_whole(entry) else None
    return None


def _content(place: str, most: int) -> bytes | None:
    """What a file of the folder holds, where both are the user's own."""
    if not _own_folder(os.path.dirname(place), make=False):
        return None
    descriptor = os.open(place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or not _is_own(found) or found.st_size > most:
            return None
        return file.read(most)


def _others(entry: Mapping[str, Any]) -> seen.Answers | None:
    """The files that hold something else than they did for this entry; None where it is of no use at all."""
    with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
        return changed(entry["answers"])
    return None


def _as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _is_whole(entry: Any) -> bool:
    said = entry["said"] if isinstance(entry, dict) and entry.get("form") == FORM and "said" in entry else None
    return (
        isinstance(said, list)
        and all(isinstance(each, list) and len(each) == 2 and each[0] in (1, 2) for each in said)
        and all(isinstance(text, str) for _, text in said)
        and entry.get("status") in (0, 1)
        and isinstance(entry.get("answers"), dict)
    )


def _own_folder(folder: str, *, make: bool) -> bool:
    """Whether the folder of entries is the user's own, and nobody else may write there."""
    if make:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    try:
        found = os.lstat(folder)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(found.st_mode) and _is_own(found)


def _is_own(found: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True  # Windows keeps a profile's folders to its user
    return found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o022


def _write(place: str, data: bytes) -> None:
    """Put an entry in its place at once: others may read there, and write as well."""
    temporary = f"{place}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _make_room(folder: str) -> None:
    """Let the oldest entries go, where there are too many; what was left behind half written, too."""
    with os.scandir(folder) as found:
        entries = sorted(((each.stat(follow_symlinks=False), each.path) for each in found), key=_age, reverse=True)
    size = 0
    for count, (found_, path) in enumerate(entries):
        size += found_.st_size
        if count >= MOST_FILES or size > MOST_IN_ALL:
            with suppress(OSError):
                os.unlink(path)


def _age(entry: tuple[os.stat_result, str]) -> int:
    return entry[0].st_mtime_ns


def _place(arguments: Sequence[str]) -> str | None:
    """Where the entry of a command line stands; None where there can be none."""
    own = _own_digest()
    if own is None:
        return None
    environment = {name: value for name, value in os.environ.items() if name in NAMES or name.startswith(FAMILIES)}
    key = [own, list(arguments), os.getcwd(), sorted(environment.items()), *map(_stream, (sys.stdout, sys.stderr))]
    name = seen.digest(json.dumps(key).encode("ascii"))
    return os.path.join(_folder(), f"{name}.json")


def _folder() -> str:
    """The user's cache folder, by the XDG base directory specification (a path that is not absolute does not count),
    or as Windows has it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.environ.get("LOCALAPPDATA", "") if os.name == "nt" else ""
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "lintfit")


def _stream(stream: Any) -> object:
    """What of a stream decides what is printed there."""
    if stream is None:
        return None
    terminal = stream.isatty()
    size: Sequence[int] = ()
    if terminal:
        with suppress(OSError, ValueError):
            size = tuple(os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ is not None else 1))
    return [terminal, stream.encoding, stream.errors, *size]


def _own_digest() -> str | None:
    """What tells this lintfit, its dependencies and this Python from others; None where it has just been changed.

    By times, sizes and numbers of files, for they are too many to read: an editable install is another with each edit.
    """
    from lintfit import __version__

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    beside = os.path.dirname(package)
    newest = 0.0
    known: list[object] = [__version__, sys.version, sys.platform, sys.flags.optimize]
    for folder in (package, os.path.join(beside, "rules"), os.path.join(beside, "schemas")):
        for path, found in _files(folder):
            known.append((path, found.st_size, found.st_mtime_ns, found.st_ino))
            newest = max(newest, found.st_mtime, found.st_ctime)
    for folder in sys.path:
        with suppress(OSError):
            names = os.listdir(folder or ".") if folder.endswith("-packages") else ()
            known.append((folder, sorted(name for name in names if name.endswith((".dist-info", ".egg-info")))))
    from time import time

    return None if time() - newest < FRESH else seen.digest(json.dumps(known).encode("ascii"))


def _files(folder: str) -> Iterable[tuple[str, os.stat_result]]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda each: each.name)
    except OSError:
        return
    for each in entries:
        if each.is_dir(follow_symlinks=False):
            if each.name != "__pycache__":
                yield from _files(each.path)
        else:
            yield each.path, each.stat()
