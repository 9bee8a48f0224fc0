"""What LLaMA-Factory's recipes take, by version, and the DeepSpeed configs among its examples.

``data/llamafactory.json`` is written by ``tools/update_llamafactory.py`` from LLaMA-Factory's repository. It is studied
at every release from 0.2.0 on and at its newest commit, which is what a project is taken to have where nothing says
otherwise.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from lintfit.catalog import by_version
from lintfit.catalog.by_version import Field, fields_at
from lintfit.resources import packaged
from lintfit.versions import release

DATA = Path(__file__).parent / "data" / "llamafactory.json"
PACKAGE = "llamafactory"


@functools.cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(packaged(DATA))
    return data


def versions() -> tuple[str, ...]:
    """The studied versions, oldest first."""
    return tuple(_data()["versions"])


@functools.cache
def first_of(version: str) -> int:
    """The index of the first studied version that is not older than this one."""
    wanted = release(version) or (0, 0, 0)
    found = (index for index, each in enumerate(versions()) if (release(each) or (0, 0, 0)) >= wanted)
    return next(found, len(versions()))


@functools.cache
def fields(at: int) -> Mapping[str, Field]:
    """The fields at a studied version, without those of transformers' ``Seq2SeqTrainingArguments``."""
    return fields_at(_data()["fields"], at)


@functools.cache
def every() -> frozenset[str]:
    """The fields that some studied version has."""
    return frozenset(_data()["fields"])


def history(name: str, at: int) -> str | None:
    """Which release took a key last, or takes it first, that this version has not; None for a name that none has."""
    having = [each for each in range(len(versions())) if name in fields(each)]
    return by_version.history(at, having, [f"LLaMA-Factory {each}" for each in versions()], every=True)


def version_of(
    given: Collection[str], stated: str | None, within: Sequence[int] = (), words: Mapping[str, str] | None = None
) -> int:
    """The studied version that these keys are for: as stated, else the newest that takes most of them.

    ``stated`` may be an upper bound (``<0.9``). ``within``: where nothing states it, one of these. ``words`` are the
    values of keys that take one of several words; a version that has this word counts for more.
    """
    every: Sequence[int] = within or range(len(versions()))
    bound = release((stated or "").removeprefix("<"))
    if bound is not None and stated is not None:
        below = [at for at in range(len(versions())) if _before(at, bound, strictly=stated.startswith("<"))]
        return below[-1] if below else 0
    return max(every, key=lambda at: (_between(given, at), _taken(given, words or {}, at), at))


@functools.cache
def around(at: int) -> Mapping[str, Field]:
    """The fields of a version and of those next to it: a checkout between two releases has some of either."""
    next_ones = [each for each in (at - 1, at + 1) if 0 <= each < len(versions())]
    return {**{name: each for one in next_ones for name, each in fields(one).items()}, **fields(at)}


def _between(given: Collection[str], at: int) -> int:
    own = around(at)
    return sum(name in own for name in given if name in every())


def _before(at: int, bound: tuple[int, int, int], strictly: bool) -> bool:
    found = release(versions()[at]) or (0, 0, 0)
    return found < bound if strictly else found <= bound


def _taken(given: Collection[str], words: Mapping[str, str], at: int) -> int:
    own = fields(at)
    known = sum(name in own for name in given if name in every())
    return known + sum(name in own and word in own[name].kind[1:].split("|") for name, word in words.items())


def deepspeed_file(name: str) -> Mapping[str, Any] | None:
    """The content of a DeepSpeed config of ``examples/deepspeed``, by its name."""
    found: Mapping[str, Any] | None = _data()["deepspeed"].get(name)
    return found


def deepspeed_files() -> tuple[str, ...]:
    """The names of all of them."""
    return tuple(_data()["deepspeed"])
