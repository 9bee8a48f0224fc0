"""Configs made from a schema: right ones, and ones with mistakes here and there."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lintfit.schema.sections import Schema

_WRONG: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.floats(-2, 2, allow_nan=False).map(lambda value: round(value, 2)),
    st.sampled_from(["auto", "x", "3", "5e8", "true", "1.5", "None"]),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["enabled", "stage", "a"]), st.booleans(), max_size=2),
)


def configs(whole: Schema, *, wrong: bool = False, largest: int = 5) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that have some of the top-level keys of a schema; with ``wrong`` some values and keys are made up."""
    if "properties" in whole:
        return _section(whole, whole, wrong, largest)
    return st.one_of(*(_section(whole["$defs"][name], whole, wrong, largest) for name in ("cluster", "sagemaker")))


def _section(schema: Schema, whole: Schema, wrong: bool, largest: int) -> st.SearchStrategy[dict[str, Any]]:
    properties = {
        key: child for key, child in schema.get("properties", {}).items() if wrong or not child.get("deprecated")
    }
    required = [key for key in schema.get("required", ()) if key in properties]
    names = st.lists(st.sampled_from(sorted(properties)), unique=True, max_size=largest) if properties else st.just([])

    @st.composite
    def build(draw: st.DrawFn) -> dict[str, Any]:
        keys = [*required, *(key for key in draw(names) if key not in required)]
        made = {key: draw(_value(properties[key], whole, wrong)) for key in keys}
        if wrong and draw(st.integers(0, 9)) == 0:
            made[draw(st.sampled_from(["stagee", "_note", "foo", "enabled", "gradient_clipping"]))] = draw(_WRONG)
        return made

    return build()


def _value(schema: Schema, whole: Schema, wrong: bool) -> st.SearchStrategy[Any]:
    right = _right(schema, whole, wrong)
    return st.one_of(right, right, right, _WRONG) if wrong else right


def _right(schema: Schema, whole: Schema, wrong: bool) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        target: Any = whole
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        return _right(target, whole, wrong)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    if "anyOf" in schema:
        return st.one_of(*(_right(part, whole, wrong) for part in schema["anyOf"]))
    types = schema.get("type")
    if types is None:
        return _WRONG
    return st.one_of(*(_typed(name, schema, whole, wrong) for name in ([types] if isinstance(types, str) else types)))


def _typed(name: str, schema: Schema, whole: Schema, wrong: bool) -> st.SearchStrategy[Any]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -2) + (1 if "exclusiveMinimum" in schema else 0))
    high = schema.get("maximum", 8)
    match name:
        case "object":
            return _section(schema, whole, wrong, 3)
        case "array":
            return st.lists(
                _right(schema.get("items", {"type": "string"}), whole, wrong),
                min_size=schema.get("minItems", 0),
                max_size=schema.get("maxItems", 2),
            )
        case "integer":
            return st.integers(int(low), int(high))
        case "number":
            if "exclusiveMaximum" in schema:
                return st.sampled_from([0.1, 0.25, 0.5])
            return st.floats(low, high, allow_nan=False).map(lambda value: round(value, 3))
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    return st.sampled_from(["a", "b/c", "AdamW"])
