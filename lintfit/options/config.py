"""What the user asks for: flags, ``lintfit.toml`` and ``[tool.lintfit]``, each value with where it was said.

The config that governs a file is the nearest one above it. Flags win over a ``[[run]]`` table, which wins over the
rest of the config. Sizes are bytes once they are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from lintfit.documents import door
from lintfit.documents.door import MAX_CONFIG
from lintfit.documents.paths import is_below, resolved
from lintfit.errors import LintfitError, shorten, shown
from lintfit.frozen import frozen, replace
from lintfit.options.config_values import KEYS, Key, texts
from lintfit.options.model import Options, RunGroup

CONFIG_NAME = "lintfit.toml"
_FILES = ("model-config", "baseline", "model")
"""Keys that name files, which a config may name below its own repository or folder only: it comes with what is checked,
from whoever wrote that."""


def from_flags(values: Mapping[str, Any], **switches: Any) -> Options:
    """Options from flags by their names without dashes (``gpu-memory``); None is a flag that was not given.

    ``switches`` are fields that only flags have (``fix=True``). Raises LintfitError for a value that is not allowed.
    """
    stated: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, value in values.items():
        if value is None:
            continue
        key = KEYS[name]
        try:
            stated[key.field] = key.read(value, Path.cwd())
        except ValueError as error:
            text = ",".join(value) if isinstance(value, (list, tuple)) else str(value)
            raise LintfitError(f"--{name} {shorten(text)}: expected {error}") from None
        origins[key.field] = f"--{name}"
    return Options(**stated, **switches, origins=origins)


def config_for(path: Path, cli: Options) -> Options:
    """The options that govern a file or folder: the flags over the nearest config above it.

    Raises LintfitError where that config cannot be read.
    """
    if cli.isolated:
        return cli
    absolute = _absolute(os.fspath(path), Path.cwd())
    found = load_config(absolute if door.is_folder(absolute) else absolute.parent)
    return cli.over(found) if found else cli


@lru_cache(maxsize=1024)
def _absolute(path: str, folder: Path) -> Path:
    """A path that may be relative to a folder; every finding asks for its file's config."""
    return Path(os.path.normpath(folder / path))


@cache
def load_config(start: Path) -> Options | None:
    """The nearest ``lintfit.toml`` or ``[tool.lintfit]`` at or above a folder, None where there is none."""
    for folder in (start, *start.parents):
        own = folder / CONFIG_NAME
        if door.is_file(own):
            if not _is_inside(own, folder):
                raise LintfitError(f"{os.path.relpath(own)}: leads out of {_top(folder)}, and is not read")
            return _read(own, ())
        project = folder / "pyproject.toml"
        if door.is_file(project) and _is_inside(project, folder) and _mentions_lintfit(project):
            found = _read(project, ("tool", "lintfit"))
            if found is not None:
                return found
    return None


def _top(folder: Path) -> Path:
    """The folder that a config there may speak of: its repository, else the folder itself."""
    return door.repository_of(folder) or folder


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a path leads, links followed, to a place below the top of a config's folder."""
    return is_below(resolved(path), (resolved(_top(folder)),))


def _mentions_lintfit(path: Path) -> bool:
    try:
        return b"lintfit" in door.read_regular(path, MAX_CONFIG)
    except OSError:
        return False


def _read(path: Path, table: Sequence[str]) -> Options | None:
    from lintfit.documents.toml import TomlError, parse

    place = os.path.relpath(path)
    try:
        text = door.read_regular(path, MAX_CONFIG).decode("utf-8-sig")
        content: Any = parse(text)
    except OSError as error:
        raise LintfitError(f"{place}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LintfitError(f"{place}: not UTF-8, which TOML must be") from None
    except TomlError as error:
        raise LintfitError(f"{place}{f':{error.line}' if error.line else ''}: {error}") from None
    for name in table:
        content = content.get(name)
        if content is None:
            return None
        if not isinstance(content, dict):
            raise LintfitError(f"{place}: {'.'.join(table)} must be a table")
    reader = _Reader(path, text, ".".join(table))
    groups = content.pop("run", [])
    options = reader.options(content, KEYS)
    return replace(options, config_path=path, runs=reader.groups(groups))


@frozen
class _Reader:
    """Reads the tables of one config file."""

    path: Path
    text: str
    prefix: str

    def options(self, table: Mapping[str, Any], allowed: Mapping[str, Key], where: str = "") -> Options:
        stated: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for name, value in table.items():
            key = allowed.get(name)
            if key is None:
                self.unknown(name, allowed, where)
                continue
            try:
                stated[key.field] = key.read(value, self.path.parent)
            except ValueError as error:
                raise self.error(name, f"{name} = {_shown(value)}: expected {error}", where) from None
            if name in _FILES and not self.may_read(name, Path(stated[key.field])):
                top = _top(self.path.parent)
                advice = f"lies outside of {top}; name it with --{name}, as only the command line may"
                raise self.error(name, f"{name} = {_shown(value)}: {advice}", where)
            origins[key.field] = f"{where}{name} in {os.path.relpath(self.path)}"
        return Options(**stated, origins=origins)

    def may_read(self, name: str, path: Path) -> bool:
        """Whether a file that the config names is below its top; a model's name is none unless it is a folder."""
        if name == "model" and not door.is_file(path / "config.json"):
            return True
        return _is_inside(path, self.path.parent)

    def groups(self, tables: object) -> tuple[RunGroup, ...]:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.error("run", "run: expected [[run]] tables")
        allowed = {name: key for name, key in KEYS.items() if key.per_run}
        groups = []
        for table in tables:
            content = dict(table)
            try:
                names = texts(content.pop("files", None))
            except ValueError as error:
                raise self.error("run", f"[[run]]: files: expected {error}") from None
            files = tuple(Path(os.path.normpath(self.path.parent / name)) for name in names)
            outside = next(
                (name for name, file in zip(names, files, strict=True) if not self.may_read("run", file)), None
            )
            if outside is not None:
                raise self.error("run", f"[[run]]: {_shown(outside)} lies outside of {_top(self.path.parent)}")
            groups.append(RunGroup(files, self.options(content, allowed, "run.")))
        return tuple(groups)

    def unknown(self, name: str, allowed: Mapping[str, Key], where: str) -> None:
        from lintfit.suggest import did_you_mean

        extra = ["files"] if where else ["run"]
        hint = did_you_mean(name, [*allowed, *extra]) or f"; known are {', '.join([*allowed, *extra])}"
        raise self.error(name, f'unknown key "{where}{name}"{hint}', where)

    def error(self, name: str, message: str, where: str = "") -> LintfitError:
        """With the line where the key stands, as far as a search for it can tell."""
        heading = rf"^\s*\[\[?\s*(?:{re.escape(self.prefix)}\.)?{re.escape(name)}\s*\]|"
        after = self.text.find("[[") if where else 0
        if self.prefix and not where:
            after = max(self.text.find(f"[{self.prefix}"), 0)
        found = re.compile(rf"""{heading}^\s*["']?{re.escape(name)}["']?\s*[=.]""", re.MULTILINE).search(
            self.text, after
        )
        place = os.path.relpath(self.path)
        if found:
            line = self.text.count("\n", 0, found.start() + len(found[0]) - len(found[0].lstrip())) + 1
            place = f"{place}:{line}"
        return LintfitError(f"{place}: {message}")


def _shown(value: object) -> str:
    import json

    try:
        return shorten(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):  # a date; more digits than Python writes out
        return shown(value)
