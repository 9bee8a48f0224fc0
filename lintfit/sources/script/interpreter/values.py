"""What an expression of a script may come to: abstract values, each with where it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from lintfit.documents import bounds
from lintfit.documents.steps import Steps
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter.origins import Datum, Origin
from lintfit.sources.script.interpreter.origins import Value as Value
from lintfit.sources.script.interpreter.scope import Scope
from lintfit.sources.training_words import DTYPES

MAX_CHOICES = 6
"""More alternatives than this are one unknown."""

_ABSTRACT = frozenset({
    "abc.ABC", "object", "typing.Generic", "typing.NamedTuple", "typing.Protocol", "typing_extensions.Protocol",
})  # fmt: skip
"""Bases that say nothing of what a class does."""


class Unknown(Value):
    """A value that is not statically known."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Const(Value):
    """A number, string, bool, bytes or None."""

    value: Any = None


@dataclass(slots=True, eq=False)
class Ref(Value):
    """Something imported or built in, by its dotted name (``torch.bfloat16``, ``transformers.Trainer``)."""

    name: str = ""


@dataclass(slots=True, eq=False)
class Items(Value):
    """A list, tuple or set. ``open`` where more elements may be there."""

    items: list[Value] = field(default_factory=list)
    open: bool = False


@dataclass(slots=True, eq=False)
class Bounded(Unknown):
    """A number that is not known, but how large it is at most: ``min(config.max_positions, 512)``."""

    most: Const | None = None


@dataclass(slots=True, eq=False)
class Table(Value):
    """A dict. ``open`` where more keys may be there.

    ``root`` is the config that OmegaConf's ``${key}`` in this table refer to; None for a plain dict. ``steps`` of a
    root are what following them draws from.
    """

    items: dict[Any, Value] = field(default_factory=dict)
    open: bool = False
    root: Table | None = None
    steps: Steps | None = None


@dataclass(slots=True, eq=False)
class Function(Value):
    """A function or lambda of the script itself; ``bound`` is the object of a method."""

    node: cst.FunctionDef | cst.Lambda | None = None
    scope: Scope | None = None
    bound: Value | None = None

    @property
    def name(self) -> str:
        return self.node.name.value if isinstance(self.node, cst.FunctionDef) else "<lambda>"


@dataclass(slots=True, eq=False)
class Field:
    """A field of a dataclass, an ``add_argument`` or a click option: what a flag may fill.

    ``kind`` is the type's bare name (``int``, ``bool``, …). ``default`` is None where there is none.
    """

    name: str
    kind: str = ""
    default: Value | None = None
    node: cst.CSTNode | None = None
    many: bool = False
    constant: Any = None
    """What a bare flag means (``store_true``, ``store_const``); None where it takes a value."""
    aliases: tuple[str, ...] = ()
    cls: Class | None = None
    """The dataclass that it is of, where dataclasses are nested."""
    nargs: str | int | None = None
    """How many words a ``positional`` one takes: argparse's ``nargs``, None for exactly one."""
    positional: bool = False


@dataclass(slots=True, eq=False)
class Class(Value):
    """A class of the script: its bases, its own members and, where it is a dataclass, its fields."""

    name: str = ""
    node: cst.ClassDef | None = None
    bases: tuple[Value, ...] = ()
    members: dict[str, Value] = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    scope: Scope | None = None
    above: list[Class] | None = None
    """What :meth:`line` has found before."""
    roots: list[str] | None = None
    """The classes of libraries that it inherits from, once they were looked for."""

    def member(self, name: str) -> Value | None:
        """A method or class attribute, looked up through the bases of this script."""
        return next((cls.members[name] for cls in self.line() if name in cls.members), None)

    def line(self) -> list[Class]:
        """This class and those of the script that it inherits from, in the order in which methods are looked up: each
        once, behind all that inherit from it; of more than anybody has, the nearest."""
        if self.above is not None:
            return self.above
        done: list[Class] = []
        seen: set[int] = set()
        waiting: list[tuple[Class, bool]] = [(self, False)]
        while waiting:
            cls, entered = waiting.pop()
            if entered:
                done.append(cls)
            elif id(cls) not in seen and len(seen) < bounds.MAX_WRAPS:
                seen.add(id(cls))
                waiting.append((cls, True))
                waiting += [(base, False) for base in cls.bases if isinstance(base, Class)]
        self.above = done[::-1]
        return self.above

    def defines(self, method: cst.CSTNode | None) -> bool:
        """Whether a function is one of its own methods."""
        return any(isinstance(member, Function) and member.node is method for member in self.members.values())

    def all_fields(self) -> dict[str, Field]:
        """The dataclass fields, inherited ones first."""
        found: dict[str, Field] = {}
        for cls in reversed(self.line()):
            found |= cls.fields
        return found

    def _bases(self) -> Iterator[Value]:
        """What it and the classes of the script above it inherit from, each class once: the first base to its end
        before the second."""
        seen: set[int] = set()
        waiting: list[Value] = list(reversed(self.bases))
        while waiting:
            base = waiting.pop()
            yield base
            if isinstance(base, Class) and id(base) not in seen and len(seen) < bounds.MAX_WRAPS:
                seen.add(id(base))
                waiting += reversed(base.bases)

    @property
    def library(self) -> str | None:
        """The dotted name of the first class of a library that this one inherits from."""
        if self.roots is None:
            named = (base.name for base in self._bases() if isinstance(base, Ref))
            self.roots = [name for name in named if name not in _ABSTRACT][:1]
        return self.roots[0] if self.roots else None

    @property
    def own(self) -> bool:
        """Whether nothing of it comes from a library: it does what its own code says, whatever its name.

        What has a ``compute_loss`` may be a copy of transformers' Trainer.
        """
        return self.member("compute_loss") is None and all(
            base.name in _ABSTRACT if isinstance(base, Ref) else isinstance(base, Class) for base in self._bases()
        )


@dataclass(slots=True, eq=False)
class Object(Value):
    """What a constructor or an unknown call returned.

    ``kind`` is the dotted name of the class or function. ``base`` is the object that this one wraps
    (``get_peft_model(model)``, an engine). ``parsed`` where a command-line parser filled it.
    """

    kind: str = ""
    call: Record | None = None
    cls: Class | None = None
    attributes: dict[str, Value] = field(default_factory=dict)
    base: Value | None = None
    parsed: bool = False
    home: Datum | None = None
    """The mapping of a config file that filled it: where a field that it lacks is added."""
    open: bool = False
    """Whether something that cannot be read (a config file, ``**kwargs``) may have set more of it."""
    at_first: dict[str, Value | None] = field(default_factory=dict)
    """What attributes were as it was made that have been set since, which comes too late for what reads them then."""

    @property
    def library(self) -> str:
        """The dotted name of its class, or of the library's class that it inherits from."""
        return (self.cls.library or self.kind) if self.cls else self.kind


@dataclass(slots=True, eq=False)
class Choice(Value):
    """One of several values; which one is not statically known."""

    options: tuple[Value, ...] = ()


@dataclass(slots=True, eq=False)
class Passed:
    """One argument of a call as it was handed in; ``node`` is the whole argument."""

    name: str | None
    value: Value
    node: cst.Arg


@dataclass(slots=True, eq=False)
class Record:
    """One call that the walk came by."""

    node: cst.Call
    function: str
    passed: list[Passed]
    spreads: bool
    order: int
    taken: bool | None
    tests: tuple[cst.BaseExpression, ...] = ()
    guarded: bool = False
    receiver: Value | None = None
    receiver_name: str | None = None
    assigned_to: str | None = None
    statement: cst.SimpleStatementLine | None = None
    loops: int = 0
    """Loops around it that are open where it is called."""
    classes: tuple[Class, ...] = ()
    """The classes of the script that it may construct, whatever name it has them by."""
    callee: Function | None = None
    """The function of the script that it calls."""
    name: str = field(init=False)
    """The last part of the function's name; rules ask every record for it."""

    def __post_init__(self) -> None:
        self.name = self.function.rpartition(".")[2]

    def keyword(self, *names: str) -> Value | None:
        """The value of the first of these keywords that was passed."""
        for name in names:
            for passed in self.passed:
                if passed.name == name:
                    return passed.value
        return None

    @property
    def positional(self) -> list[Value]:
        return [passed.value for passed in self.passed if passed.name is None]

    def value(self, index: int, *names: str) -> Value | None:
        """An argument by keyword or by position."""
        found = self.keyword(*names)
        if found is not None:
            return found
        positional = self.positional
        return positional[index] if index < len(positional) else None


def choice(options: list[Value], origin: Origin = None) -> Value:
    """One of these values: the value itself where all are the same, unknown where there are too many."""
    flat: list[Value] = []
    for option in options:
        for single in alternatives(option):
            if not any(same(single, other) for other in flat):
                flat.append(single)
        if len(flat) > MAX_CHOICES:
            return Unknown(origin)
    if len(flat) == 1:
        return flat[0]
    if not flat:
        return Unknown(origin)
    return Choice(origin, tuple(flat))


def alternatives(value: Value) -> Iterator[Value]:
    """The values that this may be: itself, or the options of a choice."""
    if isinstance(value, Choice):
        for option in value.options:
            yield from alternatives(option)
    else:
        yield value


def size(value: Value | None) -> int:
    """The steps that it takes to make, copy or go through a value."""
    match value:
        case Const(value=str() | bytes() as text):
            return bounds.cost(len(text))
        case Items() | Table():
            return bounds.cost(items=len(value.items))
    return 0


def is_none(value: Value) -> bool:
    """Whether a value is certainly None."""
    return isinstance(value, Const) and value.value is None


def same(left: Value, right: Value) -> bool:
    if left is right:
        return True
    if isinstance(left, Const) and isinstance(right, Const):
        return type(left.value) is type(right.value) and bool(left.value == right.value)
    return isinstance(left, Ref) and isinstance(right, Ref) and left.name == right.name


_INTERPOLATION = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_MAX_INTERPOLATIONS = 8
"""References that are followed into one another."""


_MAX_REFERENCES = 1000
"""References that are followed for one value: a text may hold many that hold many in turn."""


def held(table: Table, key: Any, depth: int = 0, steps: Steps | None = None) -> Value | None:
    """What a table holds at a key, with OmegaConf's ``${other.key}`` followed; None where it lacks it.

    Following a reference takes a step.
    """
    value = table.items.get(key)
    text = value.value if isinstance(value, Const) else None
    if table.root is None or not isinstance(text, str) or "${" not in text:
        return value
    if len(text) > bounds.MAX_TEXT:
        return Unknown(value.origin if value is not None else None)
    steps = steps if steps is not None else Steps(_MAX_REFERENCES, "references of a value", table.root.steps)
    if not steps.take(bounds.cost(len(text))):
        return Unknown(value.origin if value is not None else None)
    parts = _INTERPOLATION.split(text)
    found = [_referred(table.root, name, depth, steps) for name in parts[1::2]]
    if len(found) == 1 and parts[0] == parts[2] == "":
        return found[0]
    if "${" in "".join(parts[::2]) or not all(isinstance(part, Const) for part in found):
        return Unknown(value.origin if value is not None else None)
    parts[1::2] = [str(part.value) for part in found if isinstance(part, Const)]
    whole = steps.take(bounds.cost(sum(map(len, parts)))) and sum(map(len, parts)) <= bounds.MAX_TEXT
    origin = value.origin if value is not None else None
    return Const(origin, bounds.joined(parts)) if whole else Unknown(origin)


def _referred(root: Table, name: str, depth: int, steps: Steps) -> Value:
    current: Value = root
    if depth >= _MAX_INTERPOLATIONS or not steps.take():
        return Unknown()
    for part in name.split("."):
        found = held(current, part, depth + 1, steps) if isinstance(current, Table) else None
        if found is None:
            return Unknown()
        current = found
    return current


def dtype(value: Value) -> str | None:
    """lintfit's spelling of a torch dtype (``torch.bfloat16``), None for anything else."""
    if isinstance(value, Ref):
        library, _, name = value.name.rpartition(".")
        if library in ("torch", "jnp", "jax.numpy", "numpy"):
            return DTYPES.get(name)
    return None


def plain(value: Value, within: Steps | None = None) -> Any:
    """The plain Python value with dtypes in lintfit's spelling, ``UNKNOWN`` for what has none.

    Lists and tables may hold one another many times over, or themselves: what goes beyond is ``UNKNOWN``, too.
    ``within`` is the counter of all values that are asked for together.
    """
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Ref):
        return dtype(value) or UNKNOWN
    return _plain(value, Steps(bounds.MAX_VALUES, "values", within), 0)


def _plain(value: Value, steps: Steps, level: int) -> Any:
    if isinstance(value, Const | Ref):
        return plain(value)
    held_in = len(value.items) if isinstance(value, Items | Table) else 0
    if level >= bounds.MAX_LEVELS or not steps.take(1 + bounds.cost(items=held_in)):
        return UNKNOWN
    if isinstance(value, Items):
        return UNKNOWN if value.open else [_plain(item, steps, level + 1) for item in value.items]
    if isinstance(value, Table):
        return {key: _plain(held(value, key) or Unknown(), steps, level + 1) for key in value.items}
    if isinstance(value, Choice):
        options = [_plain(option, steps, level + 1) for option in value.options]
        first = options[0]
        return first if all(type(o) is type(first) and o == first for o in options[1:]) else UNKNOWN
    return UNKNOWN


def objects(value: Value | None) -> Iterator[Object]:
    """The objects that this may be, each followed by those it wraps; of more than anybody has, the outer ones."""
    seen: set[int] = set()
    waiting = [value]
    while waiting and len(seen) < bounds.MAX_WRAPS:
        current = waiting.pop(0)
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, Choice):
            waiting.extend(current.options)
        elif isinstance(current, Object):
            yield current
            waiting.append(current.base)
