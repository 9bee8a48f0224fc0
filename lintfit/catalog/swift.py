"""What ms-swift's command line takes, by version, and the models by the names that ms-swift has for them.

``data/swift.json`` is written by ``tools/update_swift.py`` from ms-swift's repository. It is studied at the last
release of each minor version from 2.0 on and at its newest commit; the last is what a project is taken to have where
nothing says otherwise.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from lintfit.catalog import by_version
from lintfit.catalog.by_version import Field, fields_at, step_at
from lintfit.resources import packaged
from lintfit.versions import release

DATA = Path(__file__).parent / "data" / "swift.json"
PACKAGE = "ms-swift"
COMMANDS = ("sft", "pt", "rlhf")


@functools.cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(packaged(DATA))
    return data


def versions() -> tuple[str, ...]:
    """The studied versions, oldest first."""
    return tuple(_data()["versions"])


def first_of(major: int, minor: int = 0) -> int:
    """The index of the first studied version that is not older than this one."""
    found = (index for index, each in enumerate(versions()) if (release(each) or ()) >= (major, minor, 0))
    return next(found, len(versions()))


@functools.cache
def fields(command: str, at: int) -> Mapping[str, Field]:
    """The fields of a command at a studied version, without those of transformers' ``TrainingArguments``."""
    declared = _data()["commands"]
    return fields_at({**declared["sft"]["fields"], **declared[command]["fields"]}, at)


@functools.cache
def inherits(command: str, at: int) -> str | None:
    """The class of transformers whose fields a command has as well; None before ms-swift 3."""
    step = step_at(_data()["commands"][command]["transformers"], at)
    return step[0] if step is not None else None


def history(command: str, name: str, at: int, others: Collection[str] = ()) -> str | None:
    """Which release takes an argument that this version has not; None for a name that none has. ``others`` are the
    fields of transformers, which some releases inherit.

    The last release of each minor version was studied: 3.5.0 and 3.4.1.post1 may differ as 3.5.3 and 3.4.1.post1 do.
    """

    def has(each: int) -> bool:
        return name in fields(command, each) or (name in others and inherits(command, each) is not None)

    having = [each for each in range(len(versions())) if has(each)]
    return by_version.history(at, having, [f"{PACKAGE} {each}" for each in versions()], every=False)


def version_of(
    command: str, given: Collection[str], others: Collection[str], stated: str | None, within: Sequence[int] = ()
) -> int:
    """The studied version that a command line is for: as stated, else the newest that takes most of its flags.

    ``others`` are the fields of transformers. ``stated`` may be an upper bound (``<4``). ``within``: where nothing
    states it, one of these.
    """
    every: Sequence[int] = within or range(len(versions()))
    if command == "rlhf":
        every = [at for at in every if "rlhf_type" in fields(command, at)] or every  # swift dpo, before 2.2
    bound = release((stated or "").removeprefix("<"))
    if bound is not None and stated is not None:
        below = [at for at in every if _before(versions()[at], bound, strictly=stated.startswith("<"))]
        if not stated.startswith("<"):
            return below[-1] if below else 0
        every = [at for at in every if at in below] or below or [0]
    return max(every, key=lambda at: (_taken(command, given, others, at), at))


def _before(version: str, bound: tuple[int, int, int], strictly: bool) -> bool:
    """Whether a studied version is not newer than another: of a minor version all releases are alike."""
    found = release(version) or (0, 0, 0)
    return found[:2] < bound[:2] or (not strictly and found[:2] == bound[:2])


def _taken(command: str, given: Collection[str], others: Collection[str], at: int) -> int:
    own, inherited = fields(command, at), others if inherits(command, at) else ()
    return sum(name in own or name in inherited for name in given)


def on_the_hub(name: str) -> str | None:
    """The Hugging Face id of a model that ModelScope has under another name, or None."""
    found: str | None = _data()["ids"].get(name)
    return found


def of_type(model_type: str) -> str | None:
    """The model that ``--model_type`` alone meant in ms-swift 2 (``qwen2-7b-instruct``), or None."""
    found: str | None = _data()["types"].get(model_type)
    return found
