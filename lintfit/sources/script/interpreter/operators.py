"""Operators, comparisons and methods of plain values. Pure functions; what is not known is None or Unknown."""

from __future__ import annotations

import operator
import posixpath
from collections.abc import Callable
from typing import Any

import libcst as cst

from lintfit.documents import bounds
from lintfit.documents.steps import Steps
from lintfit.frozen import word_set
from lintfit.sources.script.interpreter.origins import Origin
from lintfit.sources.script.interpreter.values import (
    Choice,
    Class,
    Const,
    Function,
    Items,
    Object,
    Record,
    Ref,
    Table,
    Unknown,
    Value,
    choice,
    held,
    same,
)

_BINARY: dict[type[cst.BaseBinaryOp], Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.BitOr: operator.or_,
    cst.BitAnd: operator.and_,
    cst.LeftShift: operator.lshift,
    cst.RightShift: operator.rshift,
}
_ORDER: dict[type[cst.BaseCompOp], Callable[[Any, Any], Any]] = {
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
}
_STRING_METHODS = word_set("""
    lower upper strip lstrip rstrip startswith endswith split rsplit replace join format title capitalize
    removeprefix removesuffix isdigit count find partition rpartition
    """)


def switched(record: Record) -> bool | None:
    """What ``requires_grad_(…)`` switches a module's gradients to; None where that is not statically known."""
    given = record.value(0, "requires_grad")
    return True if given is None else truth(given)


def truth(value: Value) -> bool | None:
    """Whether a value counts as true; None where that is not statically known."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Ref | Function | Class):
        return True
    if isinstance(value, Items | Table):
        return True if value.items else (None if value.open else False)
    if isinstance(value, Object):
        return (
            True if value.call is not None and value.kind[:1] and value.kind.rpartition(".")[2][:1].isupper() else None
        )
    if isinstance(value, Choice):
        options = {truth(option) for option in value.options}
        return options.pop() if len(options) == 1 else None
    return None


def constant(value: Any, origin: Origin) -> Value:
    """A computed plain value as an abstract one."""
    if isinstance(value, list | tuple | set | frozenset):
        bounds.fits(len(value), bounds.MAX_ITEMS)
        return Items(origin, [constant(item, origin) for item in value])
    if isinstance(value, dict):
        return Table(origin, {key: constant(item, origin) for key, item in value.items()})
    return Const(origin, value)


def binary(op: cst.BaseBinaryOp, left: Value, right: Value, origin: Origin) -> Value:
    """``left op right``, element-wise over the alternatives of a choice."""
    if isinstance(left, Choice):
        return choice([binary(op, option, right, origin) for option in left.options], origin)
    if isinstance(right, Choice):
        return choice([binary(op, left, option, origin) for option in right.options], origin)
    if isinstance(left, Items) and isinstance(right, Items) and isinstance(op, cst.Add):
        bounds.fits(len(left.items) + len(right.items), bounds.MAX_ITEMS)
        return Items(origin, [*left.items, *right.items], left.open or right.open)
    if isinstance(left, Table) and isinstance(right, Table) and isinstance(op, cst.BitOr):
        bounds.fits(len(left.items) + len(right.items), bounds.MAX_ITEMS)
        return Table(origin, left.items | right.items, left.open or right.open)
    if isinstance(op, cst.Modulo) and isinstance(left, Const) and isinstance(left.value, str):
        return _percent(left.value, right, origin)
    if not (isinstance(left, Const) and isinstance(right, Const)):
        return Unknown(origin)
    if isinstance(op, cst.Modulo) and isinstance(left.value, bytes):
        return Unknown(origin)
    return _computed(op, left.value, right.value, origin)


def _computed(op: cst.BaseBinaryOp, left: Any, right: Any, origin: Origin) -> Value:
    """An operation on plain values. Raises what Python does, and :class:`~lintfit.documents.bounds.TooLarge`."""
    if isinstance(op, cst.Power):
        small = all(isinstance(v, int | float) and abs(v) <= 10_000 for v in (left, right))
        return Const(origin, bounds.number(left**right)) if small and abs(right) <= 64 else Unknown(origin)
    if isinstance(op, cst.Divide) and isinstance(left, str) and isinstance(right, str):
        bounds.fits(len(left) + len(right))
        return Const(origin, posixpath.join(left, right))  # only paths are divided by a string
    compute = _BINARY.get(type(op))
    if compute is None:
        return Unknown(origin)
    _bound(op, left, right)
    if not isinstance(op, cst.LeftShift):
        _bound(op, right, left)
    return Const(origin, bounds.number(compute(left, right)))


def _bound(op: cst.BaseBinaryOp, value: Any, other: Any) -> None:
    """Raises TooLarge for a result that has no end that anybody would write: a text repeated, a number of very many
    digits."""
    if isinstance(value, str | bytes) and isinstance(other, int):
        bounds.fits(len(value) * other)
    elif isinstance(value, str | bytes) and isinstance(other, str | bytes):
        bounds.fits(len(value) + len(other))
    elif isinstance(value, int) and isinstance(other, int):
        bits = abs(other) if isinstance(op, cst.LeftShift) else other.bit_length()
        bounds.fits(value.bit_length() + bits, bounds.MAX_BITS)


def _percent(template: str, right: Value, origin: Origin) -> Value:
    if isinstance(right, Const):
        return Const(origin, bounds.by_percent(template, right.value))
    if isinstance(right, Items) and all(isinstance(item, Const) for item in right.items):
        values = tuple(item.value for item in right.items if isinstance(item, Const))
        return Const(origin, bounds.by_percent(template, values))
    return Unknown(origin)


def unary(op: cst.BaseUnaryOp, value: Value, origin: Origin) -> Value:
    if isinstance(op, cst.Not):
        known = truth(value)
        return Unknown(origin) if known is None else Const(origin, not known)
    if isinstance(value, Const) and isinstance(value.value, int | float):
        if isinstance(op, cst.Minus):
            return Const(origin, -value.value)
        if isinstance(op, cst.Plus):
            return value
    return Unknown(origin)


def compare(op: cst.BaseCompOp, left: Value, right: Value, steps: Steps) -> bool | None:
    """A comparison, each pair of values of which takes a step; None where it is not statically known."""
    if isinstance(left, Choice):
        results = {compare(op, option, right, steps) for option in left.options}
        return results.pop() if len(results) == 1 else None
    if isinstance(right, Choice):
        results = {compare(op, left, option, steps) for option in right.options}
        return results.pop() if len(results) == 1 else None
    if isinstance(op, cst.Equal | cst.Is):
        return _equal(left, right, steps)
    if isinstance(op, cst.NotEqual | cst.IsNot):
        return _negate(_equal(left, right, steps))
    if isinstance(op, cst.In):
        return _contains(right, left, steps)
    if isinstance(op, cst.NotIn):
        return _negate(_contains(right, left, steps))
    order = _ORDER.get(type(op))
    if order is not None and isinstance(left, Const) and isinstance(right, Const):
        return bool(order(left.value, right.value))
    if order is not None and isinstance(left, Items) and isinstance(right, Items):
        ours, theirs = _version(left), _version(right)
        return bool(order(ours, theirs)) if ours and theirs else None
    return None


_VERSION_PARTS = 4
"""Numbers that a tuple has at most that is compared as a whole: a version, or a compute capability."""


def _version(value: Items) -> list[int]:
    """The whole numbers of a short tuple; none where it is anything else."""
    if value.open or len(value.items) > _VERSION_PARTS:
        return []
    numbers = [item.value for item in value.items if isinstance(item, Const) and type(item.value) is int]
    return numbers if len(numbers) == len(value.items) else []


def _negate(value: bool | None) -> bool | None:
    return None if value is None else not value


def _equal(left: Value, right: Value, steps: Steps, level: int = 0) -> bool | None:
    if isinstance(left, Const) and isinstance(right, Const):
        return bool(left.value == right.value)
    if isinstance(left, Ref) and isinstance(right, Ref):
        return left.name == right.name
    definite = (Items, Table, Ref)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Const):
            if isinstance(other, definite):
                return False
            if one.value is None and isinstance(other, Object) and truth(other):
                return False
    if isinstance(left, Items) and isinstance(right, Items) and not left.open and not right.open:
        return _equal_items(left, right, steps, level)
    return True if same(left, right) and isinstance(left, Object) else None


def _equal_items(left: Items, right: Items, steps: Steps, level: int) -> bool | None:
    """Whether two lists are equal, of which one may hold the other, or itself."""
    if len(left.items) != len(right.items):
        return False
    if level >= bounds.MAX_LEVELS or not steps.take(1 + bounds.cost(items=len(left.items))):
        return None
    found: bool | None = True
    for one, other in zip(left.items, right.items, strict=True):
        known = _equal(one, other, steps, level + 1)
        if known is False:
            return False
        found = None if known is None else found
    return found


def _contains(container: Value, item: Value, steps: Steps) -> bool | None:
    if isinstance(container, Const) and isinstance(item, Const):
        text = len(container.value) if isinstance(container.value, str | bytes) else 0
        return item.value in container.value if steps.take(bounds.cost(text)) else None
    if isinstance(container, Table) and isinstance(item, Const):
        return True if item.value in container.items else (None if container.open else False)
    if isinstance(container, Object) and container.parsed and container.cls is None and isinstance(item, Const):
        # argparse's Namespace holds its attributes.
        return True if item.value in container.attributes else (None if container.open else False)
    if isinstance(container, Items):
        if not steps.take(bounds.cost(items=len(container.items))):
            return None
        found = [_equal(element, item, steps) for element in container.items]
        if True in found:
            return True
        return None if container.open or None in found else False
    return None


def string_method(text: str, method: str, arguments: list[Value], named: dict[str, Value], origin: Origin) -> Value:
    """A method of a string with known arguments."""
    if method not in _STRING_METHODS:
        return Unknown(origin)
    if method == "join" and arguments and isinstance(arguments[0], Items):
        parts = arguments[0]
        if not parts.open and all(isinstance(p, Const) and isinstance(p.value, str) for p in parts.items):
            return Const(origin, bounds.joined([p.value for p in parts.items if isinstance(p, Const)], text))
        return Unknown(origin)
    known: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Const):
            known.append(argument.value)
        elif isinstance(argument, Items) and all(isinstance(item, Const) for item in argument.items):
            known.append(tuple(item.value for item in argument.items if isinstance(item, Const)))
        else:
            return Unknown(origin)
    if method == "format":
        keywords = {name: value.value for name, value in named.items() if isinstance(value, Const)}
        whole = len(keywords) == len(named)
        return Const(origin, bounds.by_format(text, known, keywords)) if whole else Unknown(origin)
    if named:
        return Unknown(origin)
    if method == "replace":
        return Const(origin, bounds.replaced(text, *known))
    return constant(getattr(text, method)(*known), origin)


def item(container: Value, index: Value, origin: Origin) -> Value:
    """``container[index]``."""
    if isinstance(container, Choice):
        return choice([item(option, index, origin) for option in container.options], origin)
    if isinstance(container, Table) and isinstance(index, Const):
        return held(container, index.value) or Unknown(origin)
    if isinstance(container, Items) and isinstance(index, Const) and isinstance(index.value, int):
        inside = -len(container.items) <= index.value < len(container.items)
        return container.items[index.value] if inside else Unknown(origin)
    if isinstance(container, Const) and isinstance(container.value, str) and isinstance(index, Const):
        return Const(origin, container.value[index.value])
    return Unknown(origin)
