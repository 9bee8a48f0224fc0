"""Records that nothing changes once they are made, at the price of records that may.

``@dataclass(frozen=True)`` sets every field through ``object.__setattr__``, which takes four times as long, and
compiles six methods for every class when its module loads. Here the type checker alone sees to it that nobody assigns
to a field, and only ``__init__`` is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TypeVar, dataclass_transform

Record = TypeVar("Record")


@dataclass_transform(frozen_default=True)
def frozen(cls: type[Record]) -> type[Record]:
    """A dataclass with slots, a hash over all fields, and no assignment that mypy lets pass.

    A method that the class has itself is left to it.
    """
    made = dataclass(slots=True, eq=False, repr=False)(cls)
    names = [field.name for field in fields(made)]  # type: ignore[arg-type]
    compared = attrgetter(*[field.name for field in fields(made) if field.compare])  # type: ignore[arg-type]
    for name, method in (("__eq__", _equal(compared)), ("__hash__", _hash(compared)), ("__repr__", _repr(names))):
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made


def _equal(compared: Callable[[object], object]) -> Callable[[object, object], object]:
    def equal(self: object, other: object) -> object:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    return equal


def _hash(compared: Callable[[object], object]) -> Callable[[object], int]:
    def value(self: object) -> int:
        return hash(compared(self))

    return value


def _repr(names: list[str]) -> Callable[[object], str]:
    def shown(self: object) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return shown
