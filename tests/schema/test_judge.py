"""Single values against parts of the schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lintfit.documents.json_reader import read_json
from lintfit.documents.model import FileText, Node
from lintfit.documents.yaml_reader import read_yaml
from lintfit.schema.judge import allows, evidently, is_of_type
from lintfit.schema.sections import Schema, load


def node(text: str) -> Node:
    if text.startswith("."):  # JSON has no such number
        root = read_yaml(FileText(Path("x"), f"key: {text}")).root
    else:
        root = read_json(FileText(Path("x"), f'{{"key": {text}}}')).root
    found = root.get("key") if root is not None else None
    assert found is not None
    return found


def parts(schema: Any) -> Iterator[Schema]:
    """Every schema of a key in a schema."""
    if isinstance(schema, dict):
        for child in schema.get("properties", {}).values():
            yield child
            yield from parts(child)
        for child in schema.get("$defs", {}).values():
            yield from parts(child)


PARTS = tuple({json.dumps(part, sort_keys=True): part for name in ("deepspeed", "accelerate")
               for part in parts(load(name))}.values())  # fmt: skip

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-2, 9),
        st.floats(),
        st.sampled_from([5e8, 1e400, 10**99, 0.0, 1.0, "auto", "cpu", "3", "true", "NO", "no", ""]),
    ),
    lambda values: st.lists(values, max_size=3),
    max_leaves=4,
)


@given(st.sampled_from(PARTS), VALUES)
def test_what_is_evident_is_valid(part: Schema, value: Any) -> None:
    if "$ref" not in part and evidently(part, value):
        flat = {key: child for key, child in part.items() if key != "not"}
        assert Draft202012Validator(flat).is_valid(value)


def test_what_is_usual_is_evident() -> None:
    seen = [part for part in PARTS if "enum" in part and "type" not in part]
    assert len(seen) > 20
    assert all(evidently(part, word) for part in seen for word in part["enum"])


@pytest.mark.parametrize(
    ("schema", "text", "allowed"),
    [
        ({"type": "integer"}, "1.0", True),
        ({"type": "integer"}, "5e8", True),
        ({"type": "integer"}, "0.5", False),
        ({"type": "integer"}, "true", False),
        ({"type": "number"}, "true", False),
        ({"enum": [1, "1"]}, "true", False),
        ({"enum": [0, 1]}, "1.0", True),
        ({"const": 1}, "1.0", True),
        ({"const": [1, 2]}, "[1, 2]", True),
        ({"const": [1, 2]}, "[true, 2]", False),
        ({"type": ["number", "null"], "minimum": 0, "maximum": 1}, "null", True),
        ({"type": ["number", "null"], "minimum": 0, "maximum": 1}, "1.5", False),
        ({"type": ["number", "string"], "exclusiveMinimum": 0}, '"0"', True),
        ({"type": "number", "exclusiveMinimum": 0}, "0", False),
        ({"type": "number", "minimum": 0}, ".nan", False),
        ({"type": "number"}, ".nan", True),
        ({"type": "number", "minimum": 0}, ".inf", True),
        ({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}, "[1]", False),
        ({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}, "[1, 2.5]", True),
        ({"type": "array", "items": {"type": "number"}}, '[1, "a"]', False),
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "auto"}]}, '"auto"', True),
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "auto"}]}, "0", False),
        ({"type": "integer", "anyOf": [{"minimum": 3}, {"const": 1}]}, "2", False),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}, '{"a": 1}', True),
        ({"type": "array", "items": {"type": "object", "required": ["b"]}}, '[{"a": 1}]', True),
        ({"description": "anything"}, '{"a": 1}', True),
    ],
    ids=str,
)
def test_a_value_by_itself(schema: Schema, text: str, allowed: bool) -> None:
    assert allows(schema, node(text)) is allowed


@pytest.mark.parametrize(
    ("text", "names"),
    [("1", {"integer", "number"}), ("1.5", {"number"}), ("true", {"boolean"}), ('"a"', {"string"}), ("null", {"null"}),
     ("[]", {"array"}), ("{}", {"object"})],
)  # fmt: skip
def test_types(text: str, names: set[str]) -> None:
    every = ("integer", "number", "boolean", "string", "null", "array", "object")
    assert {name for name in every if is_of_type(node(text), name)} == names
