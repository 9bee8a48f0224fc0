"""What a commit or a pull request changes, as git says it, and which runs that touches.

``--staged`` is the next commit: what the index holds against HEAD. ``--changed-since REV`` is the working tree, files
that git does not know yet included, against what REV and HEAD have in common. A renamed file is one that is gone and
one that is new. Of a submodule, and of a link to a folder, every file below it counts as changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents import door
from lintfit.documents.files import ReadError, decode, kind_of
from lintfit.documents.limits import MAX_BYTES
from lintfit.documents.paths import is_below, resolved
from lintfit.errors import LintfitError
from lintfit.frozen import frozen
from lintfit.options.model import Options
from lintfit.run.model import Run
from lintfit.run.requirements import lists_among, speaks_for
from lintfit.run.versions import project_files

if TYPE_CHECKING:
    from lintfit.documents.git import Git

_SHA1, _SHA256 = 40, 64
_BY_NAME = ("--name-only", "-z", "--no-renames")
_RAW = ("--raw", "--no-abbrev", "-z", "--no-renames")
_REGULAR = ("100644", "100755")
"""Modes of files that are neither links nor submodules."""
_MOST_TEXT = 64 << 20
"""Bytes of all staged files together that are read from the index because the working tree differs."""


@frozen(eq=False)
class Changes:
    """Absolute paths that a change touches, each where git has it: its folder resolved, itself not.

    ``said`` names the change for people. ``staged`` are the texts of the index where the working tree has others.
    """

    said: str
    files: frozenset[Path]
    folders: frozenset[Path] = frozenset()
    """Submodules and links to folders: whatever lies below may be another."""
    staged: Mapping[Path, str] = {}

    def __bool__(self) -> bool:
        return bool(self.files or self.folders)

    def has(self, path: Path) -> bool:
        """Whether the change touches what this path (absolute) leads to, or a link on the way to it."""
        either = (path, resolved(path))
        return any(each in self.files or is_below(each, self.folders) for each in either)

    def in_words(self, left_out: int) -> str:
        """What of the change is looked at, and how many runs are not."""
        if not self:
            return f"nothing is {self.said}"
        files = "1 file is" if len(self.files) == 1 else f"{len(self.files)} files are"
        others = f", {left_out} other {'run is' if left_out == 1 else 'runs are'} left out" if left_out else ""
        return f"{files} {self.said}: what that touches is checked{others}"

    def touches(self, run: Run, root: Path) -> bool:
        """Whether a run reads a changed file, looks for one that is gone, or goes by one."""
        if any(map(self.has, run.looked_for)):
            return True
        if any(map(self.has, _goes_by(run, root))):
            return True
        own = {run.origin.path, *project_files(run)}
        return any(speaks_for(file, path, root) for file in lists_among(self.files) for path in own)


def _goes_by(run: Run, root: Path) -> Iterator[Path]:
    """The files beside its documents that a run goes by: lintfit's config, and the config of its model."""
    if run.options.config_path is not None:
        yield run.options.config_path
    if run.options.model_config is not None:
        yield root / run.options.model_config
    model = run.value("model")
    if isinstance(model, str) and model.isprintable():
        for folder in dict.fromkeys((run.base, run.origin.path.parent)):
            yield root / folder / model / "config.json"


def changes_of(paths: Sequence[Path], options: Options) -> Changes | None:
    """What the options ask about, in the repositories of these paths; None where they ask about no change.

    Raises LintfitError, in one line, where git is not there or knows no such commit.
    """
    if not options.staged and options.changed_since is None:
        return None
    from lintfit.documents.git import Git

    said = "staged" if options.staged else f"changed since {options.changed_since}"
    folders = dict.fromkeys(path if door.is_folder(path) else path.parent for path in paths)
    tops = {top: Git(top) for top in (_top(Git(folder)) for folder in folders)}
    changed: set[Path] = set()
    staged: dict[Path, str] = {}
    for top, git in tops.items():
        names = _staged(git) if options.staged else _since(git, options.changed_since or "")
        changed |= {top / name for name in names}
        staged |= _differing(git, top) if options.staged else {}
    files = frozenset(_placed(path) for path in changed)
    return Changes(said, files, frozenset(resolved(path) for path in files if door.is_folder(path)), staged)


def _placed(path: Path) -> Path:
    return resolved(path.parent) / path.name


def _top(git: Git) -> Path:
    return Path(os.fsdecode(git.ask("rev-parse", "--show-toplevel").removesuffix(b"\n")))


def _staged(git: Git) -> Iterator[str]:
    yield from _names(git.diff("--cached", *_BY_NAME, "--ignore-submodules=dirty"))


def _since(git: Git, revision: str) -> Iterator[str]:
    base = _common(git, revision)
    yield from _names(git.diff(*_BY_NAME, "--ignore-submodules=dirty", base))
    yield from _names(git.ask("ls-files", "--others", "--exclude-standard", "--full-name", "-z"))


def _common(git: Git, revision: str) -> str:
    """The commit that a revision and HEAD have in common."""
    found = b""
    if not revision.startswith("-"):
        question = ("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        found = git.ask(*question, allowed=(0, 1, 128)).strip()
    if len(found) not in (_SHA1, _SHA256) or not found.isalnum():
        raise LintfitError(
            f"--changed-since {revision}: git knows no such commit here; fetch it (in a workflow: `fetch-depth: 0`)"
        )
    commit = found.decode("ascii")
    if not git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}", allowed=(0, 1, 128)):
        return commit  # nothing is committed here yet
    base = git.ask("merge-base", commit, "HEAD", allowed=(0, 1)).strip().decode("ascii")
    if not base:
        raise LintfitError(
            f"--changed-since {revision}: git finds no commit that it and HEAD have in common; "
            "fetch more of the history (in a workflow: `fetch-depth: 0`)"
        )
    return base


def _differing(git: Git, top: Path) -> dict[Path, str]:
    """The staged texts of the files that the working tree has otherwise, or no longer."""
    wanted: dict[str, str] = {}
    fields = _names(git.diff(*_RAW, "--diff-filter=MDT", "--ignore-submodules=all"))
    for facts, name in zip(fields, fields, strict=False):
        mode, _, blob, *_ = facts.removeprefix(":").split(" ")
        if mode in _REGULAR:
            wanted[name] = blob
    texts: dict[Path, str] = {}
    for name, data in zip(wanted, _blobs(git, list(wanted.values())), strict=True):
        path = _placed(top / name)
        try:
            texts[path] = decode(path, data, kind_of(path)).text
        except ReadError:
            continue  # no text: it is none of lintfit's files either way
    return texts


def _blobs(git: Git, names: Sequence[str]) -> Iterator[bytes]:
    """The contents of some blobs of the index; nothing of one that is too large for any kind of file."""
    asked = "".join(f"{name}\n" for name in names).encode("ascii")
    if not asked:
        return
    most, total = max(MAX_BYTES.values()), 0
    sizes = [int(line.split()[-1]) for line in git.ask("cat-file", "--batch-check", stdin=asked).splitlines()]
    small = [name for name, size in zip(names, sizes, strict=True) if size <= most]
    total = sum(size for size in sizes if size <= most)
    if total > _MOST_TEXT:
        raise LintfitError(
            f"{len(small)} staged files, {total >> 20} MiB, differ from the working tree: put the other changes away "
            "first (git stash --keep-index)"
        )
    answer = git.ask("cat-file", "--batch", stdin="".join(f"{name}\n" for name in small).encode("ascii"))
    at = 0
    for size in sizes:
        if size > most:
            yield b"\0"  # which no text holds
            continue
        at = answer.index(b"\n", at) + 1
        yield answer[at : at + size]
        at += size + 1


def _names(output: bytes) -> Iterator[str]:
    return (os.fsdecode(name) for name in output.split(b"\0") if name)
