"""Which part of a model an expression names: attributes, layers by their numbers, what a loop goes through."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from lintfit.documents.python_walk import names_of
from lintfit.frozen import word_set
from lintfit.sources.script.interpreter.values import Record, Value
from lintfit.sources.script.reading import loops

if TYPE_CHECKING:
    from lintfit.documents.python_reader import PythonDocument

_GOES_THROUGH = frozenset({"enumerate", "list", "reversed", "zip"})

_GIVE_IT = word_set("bfloat16 children cuda eval float half modules named_children named_modules to train")
"""Methods of a module that give the module, or its parts."""


class Holder(NamedTuple):
    """What a method is called on, or a parameter is of: as it is written, and what it is."""

    node: cst.BaseExpression | None
    value: Value | None = None

    @classmethod
    def of(cls, record: Record) -> Holder:
        """What has the method of a call."""
        function = record.node.func
        return cls(function.value if isinstance(function, cst.Attribute) else None, record.receiver)


UNTOLD = "[?]"
"""An index that only running the script would tell."""


def chain(document: PythonDocument, holder: Holder, names: set[str | None]) -> tuple[list[str], str]:
    """``a.b.c`` as it stands there, where ``a`` is one of the ``names``, else what a loop around goes through, or what
    was handed to the function around; and which layers of it."""
    found, index = _names(holder.node) if holder.node is not None else ([], "")
    if found and found[0] in names:
        return found, index
    if holder.node is not None and found and (through := _looped(document, holder.node, found[0])) is not None:
        parts, layers = _names(through.iter)
        return [*parts, *found[1:]], UNTOLD if index or (layers and found[1:]) else layers
    origin = holder.value.origin if holder.value is not None else None
    handed = _names(origin) if isinstance(origin, cst.Attribute | cst.Subscript | cst.Call) else ([], "")
    return handed if handed[0] else (found, index)


def _looped(document: PythonDocument, node: cst.CSTNode, name: str) -> cst.For | None:
    """The loop around a node in the same function whose variable has this name."""
    for current in takewhile(lambda each: not isinstance(each, cst.FunctionDef), loops.around(document, node)):
        if isinstance(current, cst.For):
            target = current.target
            bound = [each.value for each in target.elements] if isinstance(target, cst.Tuple) else [target]
            if any(isinstance(each, cst.Name) and each.value == name for each in bound):
                return current
    return None


def _names(node: cst.CSTNode) -> tuple[list[str], str]:
    """``a.b.c``, also of ``a.b[0]``, of what gives it, and of what a loop goes through (``enumerate(a.b)``); and the
    index behind it."""
    match node:
        case cst.Subscript():
            holder, index = _names(node.value)
            return holder, UNTOLD if index else _index(node)
        case cst.Attribute():
            holder, index = _names(node.value)
            return ([*holder, node.attr.value] if holder else []), UNTOLD if index else ""
        case cst.Call(func=cst.Name(value=name), args=[first, *_]) if name in _GOES_THROUGH:
            return _names(first.value)
        case cst.Call(func=cst.Attribute() as func) if func.attr.value in _GIVE_IT:
            return _names(func.value)
    return names_of(node), ""


def _index(node: cst.Subscript) -> str:
    """``[:24]`` or ``[-1]``, where numbers are written there."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=value))] if (number := _number(value)) is not None:
            return f"[{number}]"
        case [cst.SubscriptElement(slice=cst.Slice(lower=lower, upper=upper, step=None))]:
            ends = [("" if end is None else _number(end)) for end in (lower, upper)]
            return UNTOLD if None in ends else f"[{ends[0]}:{ends[1]}]"
    return UNTOLD


def _number(node: cst.BaseExpression) -> str | None:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = _number(node.expression)
        return None if inner is None else f"-{inner}"
    return node.value if isinstance(node, cst.Integer) and node.value.isdecimal() else None
