"""Which arguments the libraries' command lines take, by library version.

``data/arguments.json`` is written by ``tools/update_arguments.py`` from the libraries' wheels. A library is studied at
some versions; what lies between two of them is what either takes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lintfit.frozen import frozen
from lintfit.resources import packaged
from lintfit.versions import release

DATA = Path(__file__).parent / "data" / "arguments.json"

RECENT = 2
"""Years back from the newest studied release that a project may take where nothing says which it takes."""


@frozen
class Studied:
    """The studied versions of a library that a project may have, as indices, oldest first.

    ``recent`` are those that count where nothing says which version it is; the same where something does.
    """

    library: str
    possible: tuple[int, ...]
    recent: tuple[int, ...]


@functools.cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(packaged(DATA))["libraries"]
    return data


def studied(library: str, version: str | None, floor: str | None) -> Studied | None:
    """The studied versions for ``4.46.1``, ``<5`` or an unknown one, from ``floor`` up.

    None where the project takes a version that is newer than all of them: nobody knows what that has.
    """
    found = _data()[library]
    releases = [_release(each) for each in found["versions"]]
    every = range(len(releases))
    low, high = 0, len(releases) - 1
    if floor is not None and (bound := _release(floor)):
        if bound > releases[-1]:
            return None
        low = max((index for index in every if releases[index] <= bound), default=0)
    asked = _release((version or "").removeprefix("<"))
    if asked and (version or "").startswith("<"):
        high = max((index for index in every if releases[index] < asked), default=0)
        low = min(low, high)
    elif asked:
        if asked > releases[-1]:
            return None
        low = max((index for index in every if releases[index] <= asked), default=0)
        high = min(index for index in every if releases[index] >= asked)
    possible = tuple(range(low, high + 1))
    if asked or floor is not None:
        return Studied(library, possible, possible)
    return Studied(library, possible, tuple(index for index in possible if _is_recent(found["packed"], index)))


def version_at(library: str, index: int) -> str:
    """The studied version of a library by its index."""
    return str(_data()[library]["versions"][index])


def _is_recent(packed: Sequence[str], index: int) -> bool:
    """Whether a release was still the newest of its kind :data:`RECENT` years before the newest studied one."""
    year, rest = packed[-1][:4], packed[-1][4:]
    since = f"{int(year) - RECENT}{rest}"
    return index + 1 >= len(packed) or packed[index + 1] > since


def _release(version: str) -> tuple[int, ...]:
    return release(version) or ()


def knows(cls: str) -> bool:
    """Whether a dataclass (``trl.SFTConfig``) was studied."""
    library, _, name = cls.partition(".")
    return library in _data() and name in _data()[library].get("classes", {})


def fields_at(cls: str, indices: Mapping[str, int]) -> Mapping[str, str] | None:
    """The fields of a dataclass by their kind, inherited ones first, at a studied version of each library.

    None where that version has no such class, or one of its bases is none that was studied.
    """
    return _fields_at(cls, tuple(indices.items()))


@functools.lru_cache(maxsize=1024)
def _fields_at(cls: str, at: tuple[tuple[str, int], ...]) -> Mapping[str, str] | None:
    """Kept: each run by transformers' arguments asks for them at every version that it may have."""
    indices = dict(at)
    library, _, name = cls.partition(".")
    found = _data().get(library, {}).get("classes", {}).get(name)
    bases = _at(found["bases"], indices[library]) if found is not None else None
    if bases is None:
        return None
    fields: dict[str, str] = {}
    for base in reversed(bases):
        inherited = fields_at(base, indices)
        if inherited is None:
            return None
        fields |= inherited
    own = {field: _at(steps, indices[library]) for field, steps in found["fields"].items()}
    return fields | {field: kind for field, kind in own.items() if kind is not None}


def is_argument(name: str) -> bool:
    """Whether any studied version of transformers' ``TrainingArguments`` has a field of this name."""
    return name in _data()["transformers"]["classes"]["TrainingArguments"]["fields"]


def dashes_at(index: int) -> bool:
    """Whether the HfArgumentParser of a studied transformers takes ``--micro-batch`` for ``--micro_batch``."""
    return bool(_at(_data()["transformers"]["dashes"], index))


def launch_options(indices: Sequence[int]) -> Mapping[str, str]:
    """The options of ``accelerate launch`` that any of these studied versions has, by their kind."""
    options: Mapping[str, Any] = _data()["accelerate"]["launch"]
    found = {option: [kind for at in indices if (kind := _at(steps, at))] for option, steps in options.items()}
    return {option: kinds[-1] for option, kinds in found.items() if kinds}


def is_launch_option(name: str) -> bool:
    """Whether any studied version of ``accelerate launch`` has a flag of this name."""
    return f"--{name}" in _data()["accelerate"]["launch"]


def _at(steps: Sequence[Sequence[Any]], index: int) -> Any:
    past = [step for step in steps if step[0] <= index]
    return past[-1][1] if past and len(past[-1]) == 2 else None
