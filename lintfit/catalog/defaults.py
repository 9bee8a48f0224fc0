"""Defaults of the libraries that a training run is configured with, by library version.

Classes: ``transformers``: TrainingArguments, BitsAndBytesConfig; ``trl``: SFTConfig, DPOConfig, GRPOConfig,
RewardConfig, KTOConfig, RLOOConfig, PPOConfig, ModelConfig; ``peft``: LoraConfig; ``deepspeed``: zero_optimization,
offload_optimizer, offload_param, bf16, fp16 and config (the top level). A version between two studied ones takes the
older one's values. ``optim`` is what TrainingArguments chooses beside torch 2.8 or newer; beside an older torch it is
``adamw_torch`` at every version.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from lintfit.frozen import frozen
from lintfit.resources import packaged
from lintfit.versions import concrete, numbers

DATA = Path(__file__).parent / "data" / "defaults.json"

BEFORE: Mapping[tuple[str, str, str], tuple[tuple[int, ...], Any]] = {
    ("trl", "GRPOConfig", "beta"): ((0, 19), 0.04),
}
"""Defaults of versions older than all studied ones: the first version that has another, and the value before it."""

OVERRIDDEN: Mapping[tuple[str, str], tuple[tuple[int, ...], Any]] = {
    ("trl", "bf16"): ((0, 19), None),
    ("trl", "gradient_checkpointing"): ((0, 22), True),
}
"""Fields of ``TrainingArguments`` that all of a library's configs give a default of their own: the first version that
does, where that lies between two studied ones, and the value."""


@frozen
class Default:
    """A field's default. ``since`` names the library and the oldest studied version that has this value.

    ``required`` is True where the class gives no default. Optimizer names and the like are plain strings.
    ``None`` in ``value`` is the library's own ``None``.
    """

    value: Any
    since: str
    required: bool = False


@functools.cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(packaged(DATA))
    return data


def _class(library: str, cls: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = _data()["libraries"].get(library, {}).get(cls)
    return found


@functools.lru_cache(maxsize=1024)
def version_key(version: str) -> tuple[int, ...]:
    """A version as numbers: ``4.57.0.dev0`` is (4, 57, 0); ``<5``, one before 5, is (4, 99)."""
    return numbers(concrete(version.strip())) or ()


def _index(versions: list[str], version: str | None) -> int:
    """The studied version that stands for ``version``: the newest not above it, the oldest where all are above."""
    if not version or not version_key(version):
        return len(versions) - 1
    fitting = [i for i, studied in enumerate(versions) if version_key(studied) <= version_key(version)]
    return fitting[-1] if fitting else 0


def _state(steps: list[list[Any]], index: int) -> list[Any] | None:
    """The last change at or before a version: ``[index, value]``, or None where the field is not there."""
    past = [step for step in steps if step[0] <= index]
    return past[-1] if past and len(past[-1]) == 2 else None


@functools.lru_cache(maxsize=4096)
def default(
    library: str, cls: str, field: str, version: str | None = None, base_version: str | None = None
) -> Default | None:
    """The default of a field, with the newest studied version where none is given; None where the class lacks it.

    ``base_version`` is transformers' version for the fields that TRL's configs inherit from TrainingArguments. Kept:
    each run asks for the defaults of all fields that decide memory.
    """
    found = _class(library, cls)
    if found is None:
        return None
    first, value = BEFORE.get((library, cls, field), ((), None))
    if version and version_key(version) < first:
        return Default(value, f"{library} before {'.'.join(map(str, first))}")
    base = found.get("base")
    own = OVERRIDDEN.get((library, field))
    if base and own is not None and version:
        if version_key(version) < own[0]:
            return default(base[0], base[1], field, base_version)
        return Default(own[1], f"{library} {'.'.join(map(str, own[0]))}")
    studied: list[str] = found["versions"]
    state = _state(found["fields"].get(field, []), _index(studied, version))
    if state is None:
        return default(base[0], base[1], field, base_version) if base else None
    since = f"{library} {studied[state[0]]}"
    if isinstance(state[1], dict) and state[1].get("required"):
        return Default(None, since, required=True)
    return Default(state[1], since)


def last_version(library: str, cls: str, field: str) -> str:
    """The newest studied version in which a class has a field of its own; empty for none."""
    found = _class(library, cls)
    steps = found["fields"].get(field, []) if found is not None else []
    if found is None or not steps:
        return ""
    gone = len(steps[-1]) == 1
    studied: list[str] = found["versions"]
    return studied[steps[-1][0] - 1 if gone else -1]


@functools.cache
def changes(library: str, cls: str, field: str) -> tuple[tuple[int, ...], ...]:
    """The studied versions from which on a field has another default than before; off and none are the same to it."""
    found = _class(library, cls)
    own = OVERRIDDEN.get((library, field))
    if found is None or (found.get("base") and own is not None):
        return (own[0],) if own is not None else ()
    first = BEFORE.get((library, cls, field))
    steps = [step for step in found["fields"].get(field, []) if len(step) > 1]
    bounds = [version_key(found["versions"][later[0]]) for older, later in pairwise(steps) if _differ(older, later)]
    return (*([first[0]] if first is not None else []), *bounds)


def _differ(older: list[Any], later: list[Any]) -> bool:
    return (older[1] or None) != (later[1] or None)


def _names(found: Mapping[str, Any], index: int | None) -> Iterator[str]:
    for field, steps in found["fields"].items():
        if index is None or _state(steps, index) is not None:
            yield field


@functools.lru_cache(maxsize=1024)
def fields(library: str, cls: str, version: str | None = None, base_version: str | None = None) -> frozenset[str]:
    """Names that a class accepts at a version (the newest studied one where none is given); empty for unknown classes.

    ``base_version`` is transformers' version for TRL's configs, which inherit TrainingArguments' fields.
    """
    found = _class(library, cls)
    if found is None:
        return frozenset()
    own = frozenset(_names(found, _index(found["versions"], version)))
    base = found.get("base")
    return own | fields(base[0], base[1], base_version) if base else own


@functools.cache
def ever_accepted(library: str, cls: str) -> frozenset[str]:
    """Names that a class accepts at any studied version: what to check against where the version is not known."""
    found = _class(library, cls)
    if found is None:
        return frozenset()
    base = found.get("base")
    own = frozenset(_names(found, None))
    return own | ever_accepted(base[0], base[1]) if base else own


def versions(library: str, cls: str) -> tuple[str, ...]:
    """The studied versions of a class, oldest first."""
    found = _class(library, cls)
    return tuple(found["versions"]) if found else ()


def lora_targets(model_type: str) -> tuple[str, ...] | None:
    """Modules that PEFT adapts where ``target_modules`` is None; None where PEFT has no entry and raises an error."""
    targets = _data()["lora_targets"]["targets"].get(model_type)
    return tuple(targets) if targets else None
