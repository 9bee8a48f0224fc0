"""From the paths that the user names to the files worth reading, and which of them were named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents import door, seen
from lintfit.documents.limits import MAX_BYTES
from lintfit.documents.markdown import is_page, starts_something
from lintfit.documents.model import Kind
from lintfit.documents.paths import is_below, resolved
from lintfit.frozen import frozen
from lintfit.options.config import CONFIG_NAME, config_for
from lintfit.options.model import Options
from lintfit.options.roots import root_of
from lintfit.run.gitignore import Ignored, ignored_in

if TYPE_CHECKING:
    from lintfit.run.changes import Changes

SUFFIXES: dict[str, Kind] = {
    ".json": Kind.JSON,
    ".jsonc": Kind.JSON,
    ".hjson": Kind.JSON,
    ".yaml": Kind.YAML,
    ".yml": Kind.YAML,
    ".py": Kind.PYTHON,
    ".sh": Kind.SHELL,
    ".bash": Kind.SHELL,
    ".slurm": Kind.SHELL,
    ".sbatch": Kind.SHELL,
    ".job": Kind.SHELL,
    ".mk": Kind.SHELL,
    ".just": Kind.SHELL,
    ".md": Kind.SHELL,
    ".markdown": Kind.SHELL,
    ".mdx": Kind.SHELL,
}

NAMES = frozenset({"Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".justfile"})
"""Files without a suffix that hold commands."""

NOTEBOOK = ".ipynb"
"""Notebooks, which hold Python and commands."""

_SKIPPED_FOLDERS = frozenset(
    {"__pycache__", "node_modules", "site-packages", "venv", "env", "build", "dist", "wandb", "outputs", "checkpoints"}
)


@frozen
class FoundFiles:
    """The files to look at, in order; ``named`` are those that the user gave by name."""

    files: tuple[Path, ...]
    named: frozenset[Path]
    errors: tuple[str, ...] = ()
    changes: Changes | None = None
    """What is asked about: of runs those that these touch; None for all."""


def discover(paths: Sequence[Path], options: Options) -> FoundFiles:
    """Search folders for files of a kind that lintfit reads; files given by name are taken as they are.

    Hidden folders, virtual environments and build outputs are passed over; so is what ``exclude`` names, of the flags
    or of the config above a folder, and what ``.gitignore`` files name. A named path that does not exist, is neither
    file nor folder, or may not be listed becomes an error line. With ``options.as_found`` a file given by name counts
    as one that a search has found.
    """
    files: dict[Path, None] = {}
    named: set[Path] = set()
    errors: list[str] = []
    for path in paths:
        try:
            is_folder = door.is_listable(path)
        except OSError as error:
            errors.append(f"{path}: {(error.strerror or str(error)).lower()}")
            continue
        if is_folder:
            if path.suffix in SUFFIXES:
                errors.append(f"{path}: is a folder, not a {SUFFIXES[path.suffix]} file")
            files.update(dict.fromkeys(_walk(path, options)))
        elif not door.is_there(path):
            errors.append(f"{path}: no such file")
        elif not options.as_found:
            files[path] = None
            named.add(path)
        elif not config_for(path, options).excluded(path):
            files[path] = None
    return FoundFiles(tuple(files), frozenset(named), tuple(errors))


_CONFIGS = frozenset((CONFIG_NAME, "pyproject.toml"))


def _walk(folder: Path, cli: Options) -> Iterator[Path]:
    ignored = {folder: ignored_in(folder)}
    governs: dict[Path, Options] = {}
    tops = (resolved(folder), root_of(folder, cli))
    for here, folders, names in door.walk(folder):
        holds = {*folders, *names}
        git = ignored.pop(here).below(here.name, holds) if here != folder else ignored.pop(here)
        above = governs.get(here.parent)
        options = above if above is not None and _CONFIGS.isdisjoint(holds) else config_for(here, cli)
        governs[here] = options
        folders[:] = sorted(name for name in folders if not _skipped(here / name, options, git))
        ignored.update((here / name, git) for name in folders)
        of_editor, of_github = here.name == ".vscode", ".github" in here.parts
        for name in sorted(names):
            path = here / name
            wanted = path.suffix in SUFFIXES or path.suffix == NOTEBOOK or name in NAMES
            if of_editor:
                wanted = name in ("launch.json", "tasks.json")
            if of_github:
                wanted = path.parts[-3:-1] == (".github", "workflows") and path.suffix in (".yml", ".yaml")
            if wanted and door.is_link(path) and not is_below(resolved(path), tops):
                continue  # it leads out of what is checked
            if wanted and is_page(path) and not _may_start(path):
                continue
            if wanted and not options.excluded(path) and not git.has(name, is_folder=False):
                yield path


def _may_start(page: Path) -> bool:
    """Whether a page may hold a launch: most hold none, and are not read any further."""
    seen.reading_for = ""  # a search is made anew whatever is kept
    try:
        text = door.read_regular(page, MAX_BYTES[Kind.SHELL]).decode("utf-8", "replace")
    except OSError:
        return False
    finally:
        seen.reading_for = None
    return starts_something(text)


def _skipped(folder: Path, options: Options, git: Ignored) -> bool:
    return not_searched(folder.name) or options.excluded(folder) or git.has(folder.name, is_folder=True)


def not_searched(name: str) -> bool:
    """Whether a folder of this name is passed over: it is hidden, an environment, or what a build or a run has made."""
    hidden = name.startswith(".") and name not in (".github", ".vscode")
    return hidden or name in _SKIPPED_FOLDERS or name.endswith(".egg-info")
