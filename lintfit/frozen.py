"""Records that nothing changes once they are made, at the price of records that may.

``@dataclass(frozen=True)`` sets every field through ``object.__setattr__``, which takes four times as long, and
compiles six methods for every class when its module loads. Here the type checker alone sees to it that nobody assigns
to a field, and only ``__init__`` is compiled, without the annotations, which take most of that time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

Record = TypeVar("Record")


@dataclass_transform(frozen_default=True)
def frozen(cls: type[Record]) -> type[Record]:
    """A dataclass with slots, a hash over all fields, and no assignment that mypy lets pass.

    A method that the class has itself is left to it.
    """
    made = dataclass(slots=True, init=False, eq=False, repr=False)(cls)
    parts = fields(made)  # type: ignore[arg-type]
    compared = attrgetter(*[part.name for part in parts if part.compare])
    methods = {
        "__init__": _init([part for part in parts if part.init], hasattr(cls, "__post_init__")),
        "__eq__": _equal(compared),
        "__hash__": _hash(compared),
        "__repr__": _repr([part.name for part in parts]),
    }
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made


def _init(parts: list[Field[Any]], completes: bool) -> Callable[..., None]:
    """``__init__`` of these fields. ``completes``: whether ``__post_init__`` fills in the others.

    What makes a default stands for it among the parameters.
    """
    lines = [f"def __init__(self, {', '.join(part.name for part in parts)}):"]
    defaults: list[Any] = []
    makers: dict[str, Any] = {}
    for part in parts:
        name = part.name
        if part.default_factory is MISSING:
            lines.append(f" self.{name} = {name}")
        else:
            makers[f"make_{name}"] = part.default_factory
            lines.append(f" self.{name} = make_{name}() if {name} is make_{name} else {name}")
        default = part.default if part.default_factory is MISSING else part.default_factory
        if default is not MISSING:
            defaults.append(default)
    if completes:
        lines.append(" self.__post_init__()")
    exec("\n".join(lines), makers)
    init: Any = makers["__init__"]
    init.__defaults__ = tuple(defaults)
    return init  # type: ignore[no-any-return]


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
