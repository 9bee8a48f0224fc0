"""What the example scripts that transformers and TRL publish are started with and do: facts, for scripts not at hand.

``data/examples.json`` says which files of which versions they were read in. Names of arguments are those of all
versions together: who starts a script by an argument that none of them has starts another script of that name.
"""

from __future__ import annotations

import functools
import json
import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from lintfit.frozen import frozen
from lintfit.resources import packaged

DATA = Path(__file__).parent / "data" / "examples.json"

_TRL_FOLDERS = ("trl/scripts", "examples/scripts")


@frozen
class TrlExample:
    """A script that fills TRL's config of this ``kind`` (``SFT``) and ``ModelConfig``, as ``trl sft`` does.

    ``arguments`` are its further ones.
    """

    kind: str
    arguments: frozenset[str]


@frozen
class Example:
    """A script of transformers' ``examples/pytorch``, or one that people launch from a checkout in the same way.

    ``runs`` is what trains: transformers' Trainer, or a loop with Accelerate. ``loads`` is the model's class
    (``AutoModelFor…``). ``arguments`` are its own, beside those of ``TrainingArguments``, with their defaults.
    """

    name: str
    runs: Literal["trainer", "loop"]
    loads: str
    has_dtype: bool
    arguments: Mapping[str, Any]
    length: str
    """The argument that limits a sequence, or an encoder's."""
    decoder: str | None = None
    """The argument that limits what the decoder makes."""
    most: int | None = None
    """Tokens of a sequence where nobody states the length and the tokenizer allows more."""
    publisher: str = "transformers"
    or_positions: bool = False
    """Whether newer versions take what the tokenizer allows as long as the model has positions for it."""


@functools.cache
def _data() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(packaged(DATA))
    return found


def of_trl(path: str) -> TrlExample | None:
    """The example of TRL that a script's path names: bare, or in a folder where TRL has it; None for any other."""
    folder, name = posixpath.split(path)
    found = _data()["trl"].get(name)
    if found is None or (folder and not _ends_in(folder, _TRL_FOLDERS)):
        return None
    return TrlExample(found["kind"], frozenset(found["arguments"]))


def of_transformers(path: str) -> Example | None:
    """The example of transformers that a script's path names, in the same way."""
    folder, name = posixpath.split(path)
    scripts = _data()["transformers"]
    if name not in scripts:
        return None
    found = scripts.get(scripts[name].get("as"), scripts[name])
    if not _ends_in(folder, found["folders"]) and (folder or found.get("only_there", False)):
        return None
    length = found["length"]
    return Example(
        name,
        found["runs"],
        found["loads"],
        found.get("dtype", False),
        found["arguments"],
        length["argument"],
        length.get("decoder"),
        length.get("most"),
        found.get("publisher", "transformers"),
        length.get("or_positions", False),
    )


def _ends_in(folder: str, known: tuple[str, ...] | list[str]) -> bool:
    return any(f"/{folder}".endswith(f"/{each}") for each in known)
