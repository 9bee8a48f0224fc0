"""The root: the folder below which lintfit writes.

Of a path that the user names it is the nearest folder at or above it with a lintfit config or version control; where
there is none, the working directory, or the named folder itself where that lies elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from lintfit.documents import door
from lintfit.documents.paths import is_below, resolved
from lintfit.options.config import load_config
from lintfit.options.model import Options


def roots_of(paths: Iterable[Path], options: Options) -> tuple[Path, ...]:
    """The roots of the paths that are checked, links followed, each once."""
    named = [*paths, *([options.stdin_filename] if options.stdin_filename is not None else [])]
    return tuple(dict.fromkeys(root_of(path, options) for path in named or [Path()]))


def output_roots(paths: Iterable[Path], options: Options) -> tuple[Path, ...]:
    """Where reports and a baseline may go: below the working directory's root, and those of the checked paths."""
    return tuple(dict.fromkeys((root_of(Path(), options), *roots_of(paths, options))))


def root_of(path: Path, options: Options) -> Path:
    """The root of one path, links followed."""
    here = Path.cwd()
    named = Path(os.path.normpath(path.absolute()))
    start, otherwise = (named, named) if door.is_real_folder(named) else (named.parent, here)
    if is_below(named, (here,)):
        otherwise = here
        if not is_below(resolved(named), (resolved(here),)):
            start = here  # a link leads out of the working directory: where to is not looked at
    marked = (door.repository_of(start), _configured(start, options))
    found = [folder for folder in marked if folder is not None]
    return resolved(max(found, key=lambda folder: len(folder.parts), default=otherwise))


def _configured(folder: Path, options: Options) -> Path | None:
    if options.isolated:
        return None
    found = load_config(folder)
    return found.config_path.parent if found is not None and found.config_path is not None else None
