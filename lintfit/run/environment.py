"""Which versions of the libraries are installed: the names of the ``*.dist-info`` folders, nothing is imported."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from lintfit.documents import door
from lintfit.documents.patterns import lazy_pattern
from lintfit.run.requirements import LIBRARIES

_BESIDE = (".venv", "venv")
_PACKAGES = ("lib/python3*/site-packages", "Lib/site-packages")
"""Where an environment has its packages, on POSIX and on Windows."""
_DIST_INFO = lazy_pattern(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[0-9][\w.+!]*)\.dist-info", re.ASCII)
_NAMES: Mapping[str, str] = {name.replace("-", "_"): name for name in LIBRARIES}
_MOST = 20_000
"""Names of a folder that are looked at: the largest environments have some thousand."""

Installed = Mapping[str, str]


def beside(folders: Iterable[Path]) -> tuple[Installed, str]:
    """What the nearest environment in these folders has installed, and its folder; nothing where there is none."""
    for folder in folders:
        for name in _BESIDE:
            found = _of(folder / name)
            if found:
                return found, os.path.relpath(folder / name)
    return {}, ""


def active() -> tuple[Installed, str]:
    """What the activated environment has, else the one that lintfit runs in, where transformers is there."""
    prefix = os.environ.get("VIRTUAL_ENV")
    found = _of(Path(prefix)) if prefix else {}
    if "transformers" in found:
        return found, "VIRTUAL_ENV"
    found = _own()
    return (found, "installed beside lintfit") if "transformers" in found else ({}, "")


@cache
def _of(environment: Path) -> Installed:
    if not door.is_folder(environment):
        return {}
    found: dict[str, str] = {}
    for pattern in _PACKAGES:
        for folder in sorted(door.matching(environment, pattern)):
            found.update(_listed(folder))
    return found


@cache
def _own() -> Installed:
    found: dict[str, str] = {}
    for text in sys.path:
        folder = Path(text)
        if folder.name in ("site-packages", "dist-packages"):
            found = {**_listed(folder), **found}
    return found


def _listed(folder: Path) -> Installed:
    try:
        names = [path.name for path in door.listed(folder, _MOST)]
    except OSError:
        return {}
    matches = (_DIST_INFO.fullmatch(name) for name in names if name.endswith(".dist-info"))
    return {
        _NAMES[match["name"].lower()]: match["version"]
        for match in matches
        if match and match["name"].lower() in _NAMES
    }
