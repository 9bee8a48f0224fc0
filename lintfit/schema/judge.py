"""Whether a value is one that a part of a schema allows, as the jsonschema package decides it.

A value is judged by itself: what a section holds is judged key by key, each with its own place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from types import NoneType
from typing import Any

from lintfit.documents.model import Node
from lintfit.schema.sections import Schema

_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "minimum": ge,
    "maximum": le,
    "exclusiveMinimum": gt,
    "exclusiveMaximum": lt,
    "minItems": ge,
    "maxItems": le,
}
"""Of a number, or of the length of a list."""

_OF_A_VALUE = frozenset({"type", "enum", "const", "items", *_BOUNDS})
"""Keywords that say what a value is; all others speak of what is inside a section, or say nothing of validity."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (NoneType,),
    "integer": (int,),
    "number": (int, float),
}


def allows(schema: Schema, node: Node) -> bool:
    """Whether a value by itself is valid against a schema."""
    value = _alone(node)
    return evidently(schema, value) or _is_valid(schema, value)


def is_of_type(node: Node, name: str) -> bool:
    """Whether a value is what JSON Schema calls by this name: ``integer``, ``number``, ``string``, …"""
    return allows({"type": name}, node)


def evidently(schema: Schema, value: object) -> bool:
    """Whether a schema that only lists types, words and bounds plainly has a place for a value.

    False says nothing. Of a usual file every value is evident, and jsonschema, whose import takes as long as the rest
    of the check, is not loaded.
    """
    asked = _OF_A_VALUE & schema.keys()
    if "anyOf" in schema:
        return not asked and any(evidently(part, value) for part in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        words = schema.get("enum", [schema.get("const")])
        alike = (one for one in words if type(one) is type(value) and type(value) is not list)
        return len(asked) == 1 and any(one == value for one in alike)
    return not asked or _evident_type(schema, value)


def _evident_type(schema: Schema, value: Any) -> bool:
    """Of a usual kind, and within the bounds if there may be any; ``5e8`` is as whole as 500000000."""
    names = schema.get("type", ())
    kind = int if isinstance(value, float) and value.is_integer() else type(value)
    if not any(kind in _TYPES.get(name, ()) for name in ([names] if isinstance(names, str) else names)):
        return False
    if kind is list and not all(evidently(schema.get("items", {}), one) for one in value):
        return False
    measure = len(value) if kind is list else value
    bounds = _BOUNDS.keys() & schema.keys() if kind in (int, float, list) else ()
    return all(_BOUNDS[key](measure, schema[key]) for key in bounds)


def _is_valid(schema: Schema, value: object) -> bool:
    from jsonschema.validators import Draft202012Validator

    return Draft202012Validator(_of_a_value(schema)).is_valid(value)


def _of_a_value(schema: Schema) -> Schema:
    """The schema without what it says of the inside of a section."""
    kept = {key: schema[key] for key in _OF_A_VALUE & schema.keys()}
    if "anyOf" in schema:
        kept["anyOf"] = [_of_a_value(part) for part in schema["anyOf"]]
    if "items" in schema:
        kept["items"] = _of_a_value(schema["items"])
    return kept


def _alone(node: Node) -> Any:
    """The value as JSON has it, sections empty.

    JSON Schema knows no NaN, and jsonschema finds it within any bounds; here it is below all of them.
    """
    if node.shape == "mapping":
        return {}
    if node.shape == "sequence":
        return [_alone(one) for one in node.elements]
    return -math.inf if isinstance(node.value, float) and math.isnan(node.value) else node.value
