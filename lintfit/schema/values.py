"""Whether the values of a document are those that its schema allows, with one short mistake for each that is not.

What JSON Schema says, the jsonschema package judges (:mod:`lintfit.schema.judge`). What stands here is what it has no
word for: what the libraries make of a value that the schema does not allow, and how to say it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from lintfit.documents.model import KeyPath, Node
from lintfit.documents.numerals import whole
from lintfit.documents.placeholders import is_to_fill_in
from lintfit.frozen import frozen, replace
from lintfit.schema.judge import allows, is_of_type
from lintfit.schema.sections import Key, Older, Schema, keys, newest, resolved, superseded

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LAX_INTEGER = re.compile(r"\s*[+-]?\d+(?:_\d+)*(?:\.0+)?\s*")
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_LAX_TRUTH = {**_TRUTH, "t": True, "y": True, "1": True, "f": False, "n": False, "0": False}
_PLACEHOLDER = re.compile(r"\$|\{\{|\{%|<[^>]+>|%\(|[A-Z][A-Z0-9_]{2,}")


@frozen(eq=False)
class Mistake:
    """A value that its key's schema does not allow.

    ``allowed`` says in words what it could be. ``literal`` is the text of the value that a string spells (``"8"``,
    ``"true"``), None where it spells none. ``text``: a string is asked for and a number or a truth value is there.
    ``refused``: the library stops when it reads the file; ``coerced``: it takes the value for the right one.
    """

    path: KeyPath
    node: Node
    schema: Schema
    allowed: str
    literal: str | None
    text: bool
    refused: bool
    coerced: bool

    @property
    def stringly(self) -> bool:
        """Whether only the quotes are wrong."""
        return self.literal is not None or self.text


def mistakes(root: Node, whole: Schema, older: Older = newest) -> Iterator[Mistake]:
    """The values at and below ``root`` that the schema does not allow, in document order, each key by itself.

    What stands below an unknown, a removed or a newer key is not judged, nor are placeholders of templates.
    """
    for key in keys(root, whole, older):
        if key.schema is None or "x-removed-in" in key.schema or _too_new(key.schema, older):
            continue
        if superseded(root.get(*key.path[:-1]) or root, key.schema):
            continue
        schema = resolved(key.schema, whole, key.entry.value)
        node = key.entry.value
        if (
            (allows(schema, node) and allows(key.schema, node))
            or _accepted(key, schema, node)
            or _calculated(node, schema, older)
            or _placeholder(node, schema)
        ):
            continue
        yield _mistake(key, schema, node, older)


def described(schema: Schema) -> str:
    """What a schema allows, in words: ``a whole number above 0 or "auto"``."""
    return _either(list(dict.fromkeys(_choices(schema))))


def shown(value: object) -> str:
    """A value as JSON writes it."""
    return json.dumps(value, ensure_ascii=False)


def _too_new(schema: Schema, older: Older) -> bool:
    since = schema.get("x-since")
    return since is not None and bool(older(since))


def _accepted(key: Key, schema: Schema, node: Node) -> bool:
    """Values that the schema does not name and that the library takes for good."""
    section = key.section.get("x-unknown-keys") == "refused" and len(key.path) > 1
    if node.value == "auto" and (section or schema.get("x-auto-dropped")):
        return True  # DeepSpeed's own models drop the word; who else fills it is another rule's question.
    words = {one.casefold() for one in schema.get("enum", ()) if isinstance(one, str)}
    if node.value is False and schema.get("x-false-is-zero"):
        return True  # DeepSpeed 0.15 to 0.19: ``if self.gradient_clipping() > 0.0``
    if isinstance(node.value, str) and schema.get("x-any-case") and node.value.casefold() in words:
        return True
    if schema.get("x-exported"):
        return _literal(node, schema) is not None or node.value is None or isinstance(node.value, bool)
    return type(node.value) is int and not _is_section(schema) and _coerced(node, schema)  # 0 and 1 for false and true


def _calculated(node: Node, schema: Schema, older: Older) -> bool:
    """Whether an older version takes any number where the newest wants a whole one."""
    since = schema.get("x-integer-since")
    return since is not None and bool(older(since)) and is_of_type(node, "number")


def _placeholder(node: Node, schema: Schema) -> bool:
    """Whether a template's placeholder stands there, to be filled before any library reads the file."""
    if not isinstance(node.value, str):
        return False
    enum = any(isinstance(one, str) and one != "auto" for one in schema.get("enum", ()))
    if is_to_fill_in(node.value):
        return True
    found = _PLACEHOLDER.match(node.value)
    return found is not None and not (enum and found.group().isupper())


def _mistake(key: Key, schema: Schema, node: Node, older: Older) -> Mistake:
    model = key.section.get("x-unknown-keys") == "refused" and len(key.path) > 1
    since = key.section.get("x-forbidden-since")
    strict = model and not (since is not None and older(since))
    coerced = strict and _coerced(node, schema)
    # Code that checks a value by calculating with it takes true for 1.
    passes = coerced or (isinstance(node.value, bool) and _coerced(node, schema))
    checked = strict or _checked(node, schema)
    bound = schema.get("x-range-since")
    late = is_of_type(node, "number") and (
        schema.get("x-range-unchecked") or (bound is not None and bool(older(bound)))
    )
    return Mistake(
        path=key.path,
        node=node,
        schema=schema,
        allowed=described(schema),
        literal=_literal(node, schema),
        text=_wants_text(node, schema),
        refused=checked and not passes and not late,
        coerced=coerced,
    )


def _checked(node: Node, schema: Schema) -> bool:
    """Whether the library looks at a value of this type when it reads the file."""
    checked = schema.get("x-checked")
    if isinstance(checked, list):
        return any(isinstance(node.value, float) if name == "float" else is_of_type(node, name) for name in checked)
    return _is_section(schema) if checked is None else bool(checked)


def _is_section(schema: Schema) -> bool:
    types = schema.get("type", ())
    return "object" in ([types] if isinstance(types, str) else types) and "x-exported" not in schema


def _coerced(node: Node, schema: Schema) -> bool:
    """Whether pydantic makes an allowed value of this one (its lax mode, as DeepSpeed uses it)."""
    value = node.value
    if node.shape != "scalar" or value is None:
        return False
    if isinstance(value, bool) and schema.get("x-no-boolean"):
        return False
    candidates: list[Any] = []
    if isinstance(value, bool):
        candidates.append(int(value))
    if isinstance(value, (int, float)) and value in (0, 1):
        candidates.append(bool(value))
    if isinstance(value, str):
        candidates += _lax_values(value)
    return any(allows(schema, replace(node, value=one)) for one in candidates)


def _lax_values(text: str) -> Iterator[Any]:
    if text.lower() in _LAX_TRUTH:
        yield _LAX_TRUTH[text.lower()]
    if _LAX_INTEGER.fullmatch(text):
        number = whole(text.replace("_", "").partition(".")[0])
        if number is not None:
            yield number


def _literal(node: Node, schema: Schema) -> str | None:
    """The text of the number or truth value that a string spells, where that is what the key takes."""
    if not isinstance(node.value, str):
        return None
    text = node.value.strip()
    if text.lower() in _TRUTH:
        value: Any = _TRUTH[text.lower()]
        text = "true" if value else "false"
    elif _NUMBER.fullmatch(text):
        value = whole(text)
        value = float(text) if value is None else value
    else:
        return None
    return text if allows(schema, replace(node, value=value)) else None


def _wants_text(node: Node, schema: Schema) -> bool:
    value = node.value
    if node.shape != "scalar" or value is None or isinstance(value, str):
        return False
    return allows(schema, replace(node, value=str(value))) and "enum" not in schema


def _choices(schema: Schema) -> Iterator[str]:
    if "enum" in schema:
        folded: set[str] = set()
        for one in schema["enum"]:
            text = shown(one)
            if text.casefold() not in folded:
                yield text
            folded.add(text.casefold())
        return
    if "const" in schema:
        yield shown(schema["const"])
        return
    types = schema.get("type", ())
    for name in [types] if isinstance(types, str) else types:
        yield _kind(name, schema)
    for part in schema.get("anyOf", ()):
        yield from _choices(part)


def _kind(name: str, schema: Schema) -> str:
    bounds = ""
    if name in ("integer", "number"):
        if "exclusiveMinimum" in schema and "exclusiveMaximum" in schema:
            bounds = f" between {schema['exclusiveMinimum']} and {schema['exclusiveMaximum']}"
        elif "exclusiveMinimum" in schema:
            bounds = f" above {schema['exclusiveMinimum']}"
        elif "minimum" in schema and "maximum" in schema:
            bounds = f" from {schema['minimum']} to {schema['maximum']}"
        elif "minimum" in schema:
            bounds = f" of {schema['minimum']} or more"
    words = {
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "string": "a string",
        "array": "a list",
        "object": "a section",
        "null": "null",
    }
    return words[name] + bounds


def _either(choices: list[str]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"
