"""The keys of a spec, and how the value of each is read: one line naming key, value and what is allowed for a bad one.

Models and GPUs are in :mod:`lintfit.memory.reading.named`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lintfit.errors import shown
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.spec import Evaluation
from lintfit.memory.tensors.optimizers import BLOCKWISE, TABLE
from lintfit.settings.kinds import (
    DTYPE,
    FLAG,
    LARGEST_COUNT,
    NAMED,
    OPTIMIZER,
    TARGETS,
    VERSIONS,
    Amount,
    Choice,
    Count,
    Names,
    Object,
    ValueKind,
    Word,
    nullable,
)
from lintfit.settings.registry import SETTINGS, default
from lintfit.settings.values import Fsdp
from lintfit.suggest import nearest

Read = Callable[[str, Any], Any]


def unknown(key: str) -> SpecError:
    """The error of a key that no spec has, with the one that may have been meant."""
    return SpecError(f"{_named(key)}: unknown key{_meant(str(key), (*READERS, *SPECIAL))}")


def _named(key: object) -> str:
    """A key as a message names it: quoted where it is no word."""
    return key if isinstance(key, str) and key.isidentifier() else shown(key)


def _json(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)


def _meant(word: str, known: Sequence[str]) -> str:
    close = nearest(word, known)
    return f" (did you mean '{close}'?)" if close is not None else f"; known keys: {', '.join(known)}"


def _count(least: int = 1, most: int = LARGEST_COUNT) -> Read:
    def read(key: str, value: Any) -> int:
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        if isinstance(whole, bool) or not isinstance(whole, int) or not least <= whole <= most:
            raise SpecError(f"{key}: {shown(value)} must be a whole number from {least} to {most}")
        return whole

    return read


def _amount(least: float, most: float, exclusive: bool = False) -> Read:
    def read(key: str, value: Any) -> float:
        fine = not isinstance(value, bool) and isinstance(value, int | float) and least <= value <= most
        # An integer may be larger than any float.
        fine = fine and (isinstance(value, float) or value <= sys.float_info.max)
        if not fine or (exclusive and value == least):
            bound = f"above {least:g}" if exclusive else f"from {least:g}"
            raise SpecError(f"{key}: {shown(value)} must be a number {bound} to {most:g}")
        return float(value)

    return read


def choice(*allowed: Any) -> Read:
    """A reader of one of a few values."""

    def read(key: str, value: Any) -> Any:
        for choice in allowed:
            if value == choice and type(value) is type(choice):
                return choice
        words = ", ".join(_json(choice) for choice in allowed)
        raise SpecError(f"{key}: {shown(value)} must be one of {words}")

    return read


def _anything(key: str, value: Any) -> Any:
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SpecError(f"{key}: {shown(value)} must be true or false")
    return value


def _names(key: str, value: Any) -> tuple[str, ...]:
    if (
        isinstance(value, str)
        or not isinstance(value, list | tuple)
        or not all(isinstance(name, str) for name in value)
    ):
        raise SpecError(f"{key}: {shown(value)} must be a list of module names")
    return tuple(value)


def _targets(key: str, value: Any) -> tuple[str, ...] | str | None:
    if value is None or value == "all-linear":
        return value  # type: ignore[no-any-return]
    names = _names(key, value) if not isinstance(value, str) else ()
    if not names:
        raise SpecError(f"{key}: {shown(value)} must be a list of module names or 'all-linear'")
    return names


def _among(names: tuple[str, ...]) -> Read:
    """A reader of a list of these names."""

    def read(key: str, value: Any) -> tuple[str, ...]:
        stated = _names(key, value)
        for name in stated:
            if name not in names:
                raise SpecError(f"{key}: {shown(name)} must be one of {', '.join(names)}")
        return stated

    return read


def _mapping(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SpecError(f"{key}: {shown(value)} must be a JSON object")
    return value


def _versions(key: str, value: Any) -> Mapping[str, str]:
    for name, version in _mapping(key, value).items():
        if not isinstance(version, str):
            raise SpecError(f"{key}.{_named(name)}: {shown(version)} must be a string such as '4.48.1'")
        if not version.lstrip("v")[:1].isdigit():
            raise SpecError(f"{key}.{_named(name)}: {shown(version)} must be a version such as '4.48.1'")
    return dict(value)


def _parts(readers: Mapping[str, Read]) -> Callable[[str, Any], dict[str, Any]]:
    """A reader of an object with keys of its own: those that are stated; null leaves a part to its default."""

    def read(key: str, value: Any) -> dict[str, Any]:
        stated = {}
        for name, part in _mapping(key, value).items():
            if name not in readers:
                raise SpecError(f"{key}.{_named(name)}: unknown key{_meant(name, tuple(readers))}")
            if part is not None:
                stated[name] = readers[name](f"{key}.{name}", part)
        return stated

    return read


def _stated(key: str, value: Any) -> dict[str, Any]:
    """The parts that are stated of an object whose parts the registry names."""
    kind = SETTINGS[key].kind
    assert isinstance(kind, Object) and kind.parts is not None
    return _parts({name: reader(part) for name, part in kind.parts.items()})(key, value)


def _fsdp(key: str, value: Any) -> Fsdp | None:
    if value is None:
        return None
    stated = _stated(key, value)
    if "strategy" in stated:
        stated["strategy"] = stated["strategy"].lstrip("_")
    return Fsdp(**stated)


def _generation(key: str, value: Any) -> Mapping[str, Any] | None:
    """The parts that are stated; :mod:`.defaults` makes a ``Generation`` of them."""
    return None if value is None else _stated(key, value)


def _evaluation(key: str, value: Any) -> Evaluation | None:
    return None if value is None else Evaluation(**{"batch_size": default(key, "batch_size"), **_stated(key, value)})


def _optimizer(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise SpecError(f"{key}: {shown(value)} must be an optimizer's name such as 'adamw_torch'")
    listed = value.lower() in TABLE or value.lower().startswith(BLOCKWISE)
    meant = nearest(value, TABLE) if not listed else None
    if meant is not None:
        raise SpecError(f"{key}: {shown(value)} is no optimizer that is known (did you mean '{meant}'?)")
    return value


_WORDS: Mapping[Word, Read] = {FLAG: _flag, TARGETS: _targets, OPTIMIZER: _optimizer, VERSIONS: _versions}
_OBJECTS: Mapping[str, Read] = {
    "deepspeed_config": _mapping,
    "fsdp": _fsdp,
    "generation": _generation,
    "evaluation": _evaluation,
}


def reader(kind: ValueKind) -> Read:
    """What reads a value of this kind: the value as the memory model has it, or a :class:`SpecError`."""
    match kind:
        case Count():
            return _count(kind.least, kind.most)
        case Amount():
            return _amount(kind.least, kind.most, kind.exclusive)
        case Choice():
            return choice(*kind.values)
        case Names():
            return _among(kind.among) if kind.among else _names
        case Word():
            return _WORDS[kind]
        case _:
            raise TypeError(kind)


SPECIAL = tuple(record.name for record in SETTINGS.values() if record.kind is NAMED)
"""Keys whose values the catalogue knows: read in :mod:`.named`."""
NULLABLE = frozenset(record.name for record in SETTINGS.values() if nullable(record.kind))
READERS: Mapping[str, Read] = {
    record.name: _OBJECTS[record.name] if isinstance(record.kind, Object) else reader(record.kind)
    for record in SETTINGS.values()
    if record.in_spec and record.kind is not NAMED
}
DTYPES = reader(DTYPE)

FROZEN_MODEL = _parts(
    {
        "model": _anything,
        "model_config": _anything,
        "weights_dtype": DTYPES,
        "quantization": READERS["quantization"],
        "scores": _flag,
        "prepared": _flag,
    }
)
"""One of ``frozen_models``; what ``model`` and ``model_config`` may be, :mod:`.named` knows."""

KNOWN = frozenset({*READERS, *SPECIAL})
