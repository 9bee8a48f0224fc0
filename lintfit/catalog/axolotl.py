"""axolotl's keys by release: which of them a release has, what one that is left out comes to, which stop the run.

``data/axolotl.json`` is written by ``tools/update_axolotl.py`` from axolotl's source (0.5.0 to 0.18.0): of each
key the first release that has it and the first that no longer does, and which keys only older releases read. A key that
no class of the config has is dropped without a word: the classes are pydantic models without ``extra="forbid"``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from lintfit.frozen import frozen
from lintfit.resources import packaged
from lintfit.versions import COMMIT, FLOOR, RECENT, Release, before, release

NAME = "axolotl"
Span = Sequence[str | None]


@frozen
class Removed:
    """A key whose presence stops a run: from which release on, whether only a true value does, and with which words."""

    since: str
    by_truth: bool
    words: str


@cache
def _table() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(packaged(Path(__file__).with_name("data") / "axolotl.json"))
    return found


def releases() -> tuple[str, ...]:
    """The releases that were read, oldest first."""
    return tuple(_table()["releases"])


@frozen
class Range:
    """The releases that a run may have. ``open`` says that a newer one than was read may be meant, ``undated`` that
    nothing says which: then a recipe may also be older than all that were read; ``older`` that it is."""

    releases: tuple[str, ...]
    open: bool = False
    undated: bool = False
    older: bool = False

    @property
    def newest(self) -> str:
        return self.releases[-1]

    def has(self, span: Span | None) -> bool:
        """Whether some release of the range has a key."""
        return span is not None and any(_within(each, span) for each in self.releases)

    def all_since(self, version: str) -> bool:
        """Whether every release of the range is of a version or newer."""
        return before(self.releases[0], version) is False


def range_of(versions: Mapping[str, str]) -> Range:
    """The releases that the versions of a run leave open; those of the last two years where nothing says which."""
    stated, every = versions.get(NAME), releases()
    if NAME + COMMIT in versions:
        return Range(every[-1:], open=True)
    if stated is not None and not stated.startswith("<"):
        return _of_exact(stated, every)
    oldest = versions.get(NAME + FLOOR) or RECENT[NAME]
    found = [each for each in every if before(each, oldest) is not True]
    if stated is not None:
        found = [each for each in found if before(each, stated[1:]) is True]
    undated = stated is None and NAME + FLOOR not in versions
    return Range(tuple(found), undated=undated) if found else Range(every[-1:], open=True)


def _of_exact(stated: str, every: Sequence[str]) -> Range:
    asked = release(stated)
    if asked is None:
        return Range((every[-1],), open=True)
    older = [each for each in every if _number(each) <= asked]
    newest = _number(every[-1])
    beyond = asked[:2] > newest[:2] or not older
    return Range((older[-1] if older else every[0],), open=beyond, older=not older)


def _number(version: str) -> Release:
    found = release(version)
    assert found is not None
    return found


def _within(version: str, span: Span) -> bool:
    first, gone = span
    return before(version, str(first)) is False and (gone is None or before(version, gone) is True)


def known_keys() -> Mapping[str, Span]:
    """The keys of the config, plugins' own apart."""
    found: Mapping[str, Span] = _table()["keys"]
    return found


def read_before(key: str) -> bool:
    """Whether only releases before those that were read know a key (0.1 to 0.4, ``cfg.key`` in their source)."""
    return key in _table()["before"]


def section(name: str) -> Mapping[str, Span]:
    """The keys of a key that holds a section; empty where it is none, or one of any keys."""
    found: Mapping[str, Span] = _table()["sections"].get(name, {})
    return found


def plugin_of(key: str) -> str | None:
    """The name of the plugin that a key belongs to, of those that come with axolotl."""
    return next((plugin["name"] for plugin in _table()["plugins"].values() if key in plugin["keys"]), None)


def plugin_folder(name: str) -> str | None:
    """The part of a plugin's name that says which of axolotl's own it is; None for somebody else's."""
    parts = name.split(".")
    return parts[2] if name.startswith("axolotl.integrations.") and parts[2] in _table()["plugins"] else None


def plugin_keys(folder: str) -> Mapping[str, Span]:
    found: Mapping[str, Span] = _table()["plugins"][folder]["keys"]
    return found


def removed(key: str) -> Removed | None:
    """What is said of a key that stops a run."""
    found = _table()["removed"].get(key)
    return Removed(found[0], found[1] == "true", found[2]) if found is not None else None


def default(key: str, version: str) -> Any:
    """What a key that is left out comes to in a release; None for one that has no default."""
    changes = [value for since, value in _table()["defaults"].get(key, ()) if before(version, since) is False]
    return changes[-1] if changes else None


def deepspeed_file(name: str) -> Mapping[str, Any] | None:
    """The DeepSpeed config of this name that comes with axolotl (``deepspeed_configs/``)."""
    found: Mapping[str, Any] | None = _table()["deepspeed"].get(name)
    return found


def deepspeed_files() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = _table()["deepspeed"]
    return found


def pins(version: str) -> Mapping[str, str]:
    """The libraries that a release is installed with in one version alone; empty for one that was not read."""
    found: Mapping[str, str] = _table()["pins"].get(version, {})
    return found
