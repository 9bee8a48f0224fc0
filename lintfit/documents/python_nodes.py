"""libcst's classes of nodes, made so that they load and work in less time.

libcst declares some 170 nodes as frozen dataclasses below an abstract class. That costs at four places:

- ``@dataclass(frozen=True)`` compiles four methods for each class when libcst loads, half of the time that it takes.
- The ``__init__`` that it compiles sets each field through ``object.__setattr__``, and the parser makes millions.
- An abstract class is asked in Python whether something is one of its instances, which takes five times as long.
- Each class has an ``__eq__`` and a ``__hash__`` in Python, by identity, and spans and parents are kept by node.

So the classes are made with one method to compile, ``__init__``, which is compiled for the first node of a class and
sets fields as any class does; they answer as plain classes do (libcst registers no others as theirs), and a node is
told from others as any object is. It is then no longer kept from changing: the type checker sees to that. Where
somebody has loaded libcst before, its classes stay as they are.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Callable, Iterator
from typing import Any

CHECKS: list[bool] = [True]
"""Whether nodes check themselves when they are made: they do not while this is empty."""

_OF_NODES = "libcst._nodes."


def load() -> None:
    """Load libcst, unless it is there already."""
    if "libcst" in sys.modules:
        return
    import dataclasses

    own: Any = dataclasses.dataclass

    def dataclass(cls: type | None = None, **how: Any) -> Any:
        if cls is None:
            return lambda cls: dataclass(cls, **how)
        if how != {"frozen": True} or not cls.__module__.startswith(_OF_NODES):
            return own(cls, **how)
        made = own(cls, init=False, repr=False, eq=False)
        if "__init__" not in cls.__dict__:
            made.__init__ = _first()
        return made

    dataclasses.dataclass = dataclass
    try:
        from libcst import CSTNode
    finally:
        dataclasses.dataclass = own
    node: Any
    for node in {CSTNode, *_below(CSTNode)}:
        node.__class__ = _Plain
        node.__eq__ = object.__eq__
        node.__hash__ = object.__hash__


def is_own(cls: type) -> bool:
    """Whether a class of nodes was made here."""
    return type(cls) is _Plain


class _Plain(ABCMeta):
    """The class of classes that are asked as plain ones are."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def _below(cls: type) -> Iterator[type]:
    below: list[type] = cls.__subclasses__()
    for each in below:
        yield each
        yield from _below(each)


def _first() -> Callable[..., None]:
    """The ``__init__`` of a class of which there is no node yet."""

    def first(self: object, *values: Any, **named: Any) -> None:
        # libcst makes each class a second time, with slots: it is the one that has this method now.
        made: Any = next(cls for cls in type(self).__mro__ if cls.__dict__.get("__init__") is first)
        made.__init__ = _init(made)
        made.__init__(self, *values, **named)

    return first


def _init(cls: type) -> Callable[..., None]:
    """``__init__`` as :mod:`dataclasses` has it, but for how fields are set and when a node checks itself."""
    from dataclasses import MISSING, fields

    known: dict[str, Any] = {"checks": CHECKS, "MISSING": MISSING}
    names, defaults, lines = ["self"], [], []
    for field in fields(cls):
        name = field.name
        names.append(name)
        if field.default_factory is not MISSING:
            known[f"make_{name}"] = field.default_factory
            defaults.append(MISSING)
            lines.append(f" self.{name} = make_{name}() if {name} is MISSING else {name}")
            continue
        lines.append(f" self.{name} = {name}")
        if field.default is not MISSING:
            defaults.append(field.default)
    lines.append(" if checks: self.__post_init__()")
    exec("\n".join([f"def __init__({', '.join(names)}):", *lines]), known)
    init: Any = known["__init__"]
    init.__defaults__ = tuple(defaults)
    return init  # type: ignore[no-any-return]
