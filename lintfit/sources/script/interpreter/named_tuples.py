"""``collections.namedtuple``: a class of fields in order, whose objects are tuples as well."""

from __future__ import annotations

from lintfit.sources.script.interpreter.protocol import Evaluator
from lintfit.sources.script.interpreter.values import (
    Class,
    Const,
    Field,
    Items,
    Object,
    Record,
    Ref,
    Unknown,
    Value,
    is_none,
)

BASE = "typing.NamedTuple"


def made(interpreter: Evaluator, record: Record) -> Value:
    """``namedtuple(name, names, defaults=…)``: the class; unknown where its fields are."""
    names = _names(record.value(1, "field_names"))
    given = record.keyword("defaults")
    if names is None or record.spreads:
        return Unknown(record.node)
    defaults: list[Value] = []
    if given is not None and not is_none(given):
        if not isinstance(given, Items) or given.open or len(given.items) > len(names):
            return Unknown(record.node)
        defaults = given.items
    interpreter.walk.step(len(names))
    behind: list[Value | None] = [*(None for _ in range(len(names) - len(defaults))), *defaults]
    fields = {name: Field(name, default=default, node=record.node) for name, default in zip(names, behind, strict=True)}
    title = record.value(0, "typename")
    named = str(title.value) if isinstance(title, Const) else ""
    return Class(record.node, named, bases=(Ref(record.node, BASE),), fields=fields)


def _names(value: Value | None) -> list[str] | None:
    """The fields' names: of a sequence, or of a text with blanks or commas between them."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value.replace(",", " ").split()
    if not isinstance(value, Items) or value.open:
        return None
    names = [item.value for item in value.items if isinstance(item, Const) and isinstance(item.value, str)]
    return names if len(names) == len(value.items) else None


def parts(value: Object) -> list[Value] | None:
    """The fields of a named tuple's object in their order; None for any other object."""
    cls = value.cls
    if cls is None or not any(isinstance(base, Ref) and base.name == BASE for base in cls.bases):
        return None
    return [value.attributes.get(name) or Unknown(value.origin) for name in cls.all_fields()]
