"""Methods of the script's plain strings, lists and dicts."""

from __future__ import annotations

from lintfit.documents import bounds
from lintfit.sources.script.interpreter import operators
from lintfit.sources.script.interpreter.values import (
    Choice,
    Const,
    Items,
    Object,
    Record,
    Table,
    Unknown,
    Value,
    choice,
    held,
)

GROWS = frozenset({"append", "add", "extend", "update"})
"""Methods that add to a list or set."""
CHANGES = GROWS | {"pop", "setdefault", "remove", "insert", "clear", "discard"}
"""Methods that leave their list, set or dict another one."""
AT_ONCE = frozenset({"append", "add", "get", "pop", "setdefault", "startswith", "endswith", "open"})
"""Methods that do not go through the whole of their text, list or dict."""

_PATH_OPENS = frozenset({"open", "read_text", "read_bytes"})
_PATH_STAYS = frozenset({"resolve", "absolute", "expanduser", "as_posix"})
"""Methods of a ``pathlib.Path``, which is a string here, that name the same file."""


def method(receiver: Value, record: Record) -> Value | None:
    name, positional = record.name, record.positional
    if isinstance(receiver, Const):
        if isinstance(receiver.value, str) and name in _PATH_OPENS:
            return Object(record.node, f"pathlib.Path.{name}", record)
        if isinstance(receiver.value, str) and name in _PATH_STAYS:
            return receiver
        if isinstance(receiver.value, str):
            if record.spreads:
                return Unknown(record.node)
            named = {passed.name: passed.value for passed in record.passed if passed.name is not None}
            return operators.string_method(receiver.value, name, positional, named, record.node)
        return Unknown(record.node)
    if isinstance(receiver, Items):
        return _list_method(receiver, record)
    if isinstance(receiver, Table):
        return _dict_method(receiver, record)
    mapped = name in ("get", "lower", "upper", "strip", "split", "startswith", "endswith", "copy", "items", "replace")
    if (
        isinstance(receiver, Choice)
        and mapped
        and all(isinstance(option, Const | Table) for option in receiver.options)
    ):
        return choice([method(option, record) or Unknown(record.node) for option in receiver.options], record.node)
    return None


def _list_method(receiver: Items, record: Record) -> Value:
    match record.name:
        case "append" | "add" if record.positional:
            receiver.items.append(record.positional[0])
        case "extend" | "update" if record.positional and isinstance(record.positional[0], Items):
            receiver.items.extend(record.positional[0].items[: bounds.MAX_ITEMS + 1])
            receiver.open |= record.positional[0].open
        case "copy":
            return Items(record.node, list(receiver.items), receiver.open)
        case "remove" | "pop" | "insert" | "extend" | "update" | "clear" | "discard":
            receiver.open = True
        case _:
            return Unknown(record.node)
    if len(receiver.items) > bounds.MAX_ITEMS:
        receiver.items.clear()
        receiver.open = True
    return Const(record.node, None)


def _dict_method(receiver: Table, record: Record) -> Value:
    positional = record.positional
    key = positional[0].value if positional and isinstance(positional[0], Const) else None
    default = positional[1] if len(positional) > 1 else Const(record.node, None)
    match record.name:
        case "get" | "pop" | "setdefault":
            if not positional or not isinstance(positional[0], Const) or not bounds.is_key(key):
                return Unknown(record.node)
            found = held(receiver, key)
            if record.name == "pop":
                receiver.items.pop(key, None)
            if found is None and record.name == "setdefault":
                receiver.items[key] = default
            return found or (Unknown(record.node) if receiver.open else default)
        case "update":
            for value in positional:
                if isinstance(value, Table):
                    receiver.items |= value.items
                    receiver.open |= value.open
                else:
                    receiver.open = True
            receiver.items |= {passed.name: passed.value for passed in record.passed if passed.name is not None}
            return Const(record.node, None)
        case "copy":
            return Table(record.node, dict(receiver.items), receiver.open)
        case "items":
            pairs = [
                Items(record.node, [Const(record.node, k), held(receiver, k) or Unknown(record.node)])
                for k in receiver.items
            ]
            return Items(record.node, list(pairs), receiver.open)
        case "keys":
            return Items(record.node, [Const(record.node, k) for k in receiver.items], receiver.open)
        case "values":
            values = [held(receiver, k) or Unknown(record.node) for k in receiver.items]
            return Items(record.node, values, receiver.open)
    return Unknown(record.node)
