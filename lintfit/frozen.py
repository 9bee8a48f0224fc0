"""Records that nothing changes once they are made, at the price of records that may.

``@dataclass(frozen=True)`` sets every field through ``object.__setattr__``, which takes four times as long, and
compiles six methods for every class when its module loads. Here the type checker alone sees to it that nobody assigns
to a field, and only ``__init__`` is compiled, for the first record, without the annotations, which take most of that
time. The module :mod:`dataclasses` itself, a tenth of the program's start, is loaded only where somebody asks it for a
record's fields.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, overload

Record = TypeVar("Record")

if TYPE_CHECKING:
    from dataclasses import replace as replace  # which the checker follows field by field
else:

    def replace(record, /, **changes):
        """The record with other values in some of its fields."""
        fields = record.__match_args__
        given = {name: getattr(record, name) for name in fields} | changes
        if len(given) > len(fields):
            raise TypeError(f"{record.__class__.__name__} has no field {', '.join(changes.keys() - set(fields))}")
        return record.__class__(*given.values())


class _Field:
    """What sets a field apart from others: see :func:`field`."""

    def __init__(self, maker: Callable[[], Any] | None, init: bool, compare: bool) -> None:
        self.maker = maker
        self.init = init
        self.compare = compare


def field(*, default_factory: Callable[[], Any] | None = None, init: bool = True, compare: bool = True) -> Any:
    """A field whose default is made anew for each record, which ``__init__`` does not take, or which equality leaves
    out."""
    return _Field(default_factory, init, compare)


def word_set(text: str) -> frozenset[str]:
    """A set of words, written with blanks between them."""
    return frozenset(text.split())


def names(cls: type) -> tuple[str, ...]:
    """The fields of a record that are given, not worked out."""
    taken: tuple[str, ...] = cls.__match_args__  # type: ignore[attr-defined]
    return taken


@overload
def frozen(cls: type[Record]) -> type[Record]: ...
@overload
def frozen(*, eq: bool) -> Callable[[type[Record]], type[Record]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Record] | None = None, *, eq: bool = True) -> Any:
    """A class like a dataclass with slots, a hash over all fields, and no assignment that mypy lets pass.

    A method that the class has itself is left to it. ``eq``: whether records with equal fields are equal; else each is
    equal to itself alone.
    """
    return _made(cls, eq) if cls is not None else lambda cls: _made(cls, eq)


def _made(cls: type[Record], eq: bool) -> type[Record]:
    names = tuple(cls.__annotations__)
    stated = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    special = {name: value for name, value in stated.items() if isinstance(value, _Field)}
    taken = tuple([name for name in names if name not in special or special[name].init])
    compared = tuple([name for name in names if name not in special or special[name].compare])
    members = {
        **(_by_value(attrgetter(*compared)) if eq else {}),
        "__repr__": _repr(names),
        **{name: value for name, value in cls.__dict__.items() if name not in stated and name not in _OF_NO_SLOTS},
        "__slots__": names,
        "__match_args__": taken,
        "__dataclass_fields__": _Fields(stated),
        "__qualname__": cls.__qualname__,
    }
    made: Any = type(cls.__name__, cls.__bases__, members)

    def first(self: object, *values: Any, **named: Any) -> None:
        # Of all classes that a run loads it makes records of a few: __init__ is compiled for the first.
        made.__init__ = _init(taken, stated, hasattr(cls, "__post_init__"))
        made.__init__(self, *values, **named)

    if "__init__" not in members:
        made.__init__ = first
    return made  # type: ignore[no-any-return]


_OF_NO_SLOTS = frozenset({"__dict__", "__weakref__"})


def _init(names: tuple[str, ...], stated: dict[str, Any], completes: bool) -> Callable[..., None]:
    """``__init__`` of these fields, with what is ``stated`` for their defaults.

    ``completes``: whether ``__post_init__`` fills in other fields. What makes a default stands for it among the
    parameters.
    """
    lines = [f"def __init__(self, {', '.join(names)}):"]
    defaults: list[Any] = []
    makers: dict[str, Any] = {}
    for name in names:
        default = stated.get(name)
        if isinstance(default, _Field):
            default = makers[f"make_{name}"] = default.maker
            lines.append(f" self.{name} = make_{name}() if {name} is make_{name} else {name}")
        else:
            lines.append(f" self.{name} = {name}")
        if name in stated:
            defaults.append(default)
    if completes:
        lines.append(" self.__post_init__()")
    exec("\n".join(lines), makers)
    init: Any = makers["__init__"]
    init.__defaults__ = tuple(defaults)
    return init  # type: ignore[no-any-return]


class _Fields:
    """The fields of a class as :mod:`dataclasses` has them, for its own ``fields``, ``replace`` and ``asdict``."""

    def __init__(self, stated: dict[str, Any]) -> None:
        self._stated = stated

    def __get__(self, record: object, cls: Any) -> dict[str, Any]:
        import dataclasses

        stated = dict(self._stated)
        for name, value in stated.items():
            if isinstance(value, _Field):
                made: Any = value.maker or dataclasses.MISSING
                stated[name] = dataclasses.field(default_factory=made, init=value.init, compare=value.compare)
        twin: Any = type(cls.__name__, (), {"__doc__": "", "__annotations__": cls.__annotations__, **stated})
        found: dict[str, Any] = dataclasses.dataclass(init=False, eq=False, repr=False)(twin).__dataclass_fields__
        cls.__dataclass_fields__ = found
        return found


def _by_value(compared: Callable[[object], object]) -> dict[str, Any]:
    return {"__eq__": _equal(compared), "__hash__": _hash(compared)}


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


def _repr(names: tuple[str, ...]) -> Callable[[object], str]:
    def shown(self: object) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return shown
