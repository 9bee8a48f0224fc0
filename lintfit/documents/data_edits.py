"""Setting, removing and renaming the values of a JSON or YAML document by splicing.

Every function works out edits in the file's own style, applies them to a copy, reads the result again, and gives them
out only if the values differ at the asked path and nowhere else.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lintfit.documents.edits import apply
from lintfit.documents.model import DataDocument, Edit, Entry, FileText, KeyPath, Kind, Node


class CannotEdit(ValueError):
    """The change cannot be written without changing something else; the message says what stands in the way."""


def set_value(document: DataDocument, path: KeyPath, value: Any) -> tuple[Edit, ...]:
    """The edits that make ``document`` hold ``value`` (plain dicts, lists and scalars) at ``path``.

    A value that is there is replaced; a missing key is added behind its mapping's last entry in the style of its
    neighbours, and missing mappings on the way are made. Strict JSON stays strict; YAML strings that PyYAML would read
    as something else (``no``, ``on``, ``1e-5``) are quoted. Empty where the document says so already.
    Raises :class:`CannotEdit`.
    """
    if document.kind is Kind.JSON:
        value = _as_hjson(value)
    expected = _expect(document, lambda data: _put(data, path, value))
    root = document.root
    if root is not None and same(root.plain(), expected):
        return ()
    steps = _follow(document, path)
    depth = len(steps) - 1
    # A scalar or an alias is replaced as a whole.
    if depth == len(path) or steps[-1].shape == "scalar" or _is_alias(document, steps[-1]):
        edits = _writer(document).replaced(document, steps, _below(expected, path[:depth]))
    else:
        edits = _writer(document).added(document, steps, path[depth], _below(expected, path[: depth + 1]))
    return _checked(document, edits, expected)


def remove(document: DataDocument, path: KeyPath) -> tuple[Edit, ...]:
    """The edits that take out the entry (or element) at ``path`` with its line, comma and trailing comment.

    Comments of its neighbours stay. Empty where there is no such path. Raises :class:`CannotEdit`.
    """
    if not path or document.root is None or document.root.get(*path) is None:
        return ()
    expected = _expect(document, lambda data: _drop(data, path))
    steps = _follow(document, path)
    if len(steps) - 1 != len(path):
        raise CannotEdit(f"{_shown(path)} comes through an alias or merge key")
    return _checked(document, _writer(document).removed(document, steps), expected)


def rename(document: DataDocument, path: KeyPath, key: str) -> tuple[Edit, ...]:
    """The edits that give the entry at ``path`` another key. Raises :class:`CannotEdit`, also where the key exists."""
    if not path or not isinstance(path[-1], str) or document.root is None:
        raise CannotEdit("only a mapping's entries have names")
    mapping = document.root.get(*path[:-1])
    if document.root.get(*path) is None or mapping is None:
        raise CannotEdit(f"there is no {_shown(path)}")
    if key == path[-1]:
        return ()
    if mapping.entry(key) is not None:
        raise CannotEdit(f"{_shown((*path[:-1], key))} exists already")
    expected = _expect(document, lambda data: _rekey(data, path, key))
    steps = _follow(document, path)
    if len(steps) - 1 != len(path):
        raise CannotEdit(f"{_shown(path)} comes through an alias or merge key")
    edits = [
        Edit(entry.key_span, _writer(document).key_text(key, document.slice(entry.key_span)))
        for entry in mapping.entries
        if entry.key == path[-1]
    ]
    return _checked(document, tuple(edits), expected)


def own_entries(mapping: Node) -> list[Entry]:
    """The entries that are written in the mapping itself, not merged from an anchor."""
    return [entry for entry in mapping.entries if mapping.span.start <= entry.key_span.start < mapping.span.end]


def same(left: object, right: object) -> bool:
    """Whether two plain values are equal with equal types (1, 1.0 and true are three things; NaN equals itself)."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (left != left and right != right)
    return type(left) is type(right) and left == right


def _as_hjson(value: Any) -> Any:
    """The value as hjson would read it back: a whole number below 1e10 is an int however it is written."""
    if isinstance(value, dict):
        return {key: _as_hjson(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_hjson(item) for item in value]
    if isinstance(value, float) and abs(value) < 1e10 and value.is_integer():
        return int(value)
    return value


def _writer(document: DataDocument) -> Any:
    if document.kind is Kind.JSON:
        from lintfit.documents import json_edits

        return json_edits
    from lintfit.documents import yaml_edits

    return yaml_edits


def reader_of(kind: Kind) -> Callable[[FileText], DataDocument]:
    """What reads text of this kind: JSON or YAML."""
    if kind is Kind.JSON:
        from lintfit.documents.json_reader import read_json

        return read_json
    from lintfit.documents.yaml_reader import read_yaml

    return read_yaml


def read_again(document: DataDocument, text: str) -> DataDocument:
    """The document as it would be if its file had this text."""
    return (document.reader or reader_of(document.kind))(replace(document.file, text=text))


def _follow(document: DataDocument, path: KeyPath) -> list[Node]:
    """The nodes from the root along ``path``, as far as each is written in its own place."""
    assert document.root is not None
    steps = [document.root]
    for step in path:
        node = steps[-1]
        if _is_alias(document, node):
            break
        if isinstance(step, str) and node.shape == "mapping":
            own = [entry for entry in own_entries(node) if entry.key == step]
            if not own:
                break
            steps.append(own[-1].value)
        elif isinstance(step, int) and node.shape == "sequence" and -len(node.elements) <= step < len(node.elements):
            steps.append(node.elements[step])
        else:
            break
    return steps


def _is_alias(document: DataDocument, node: Node) -> bool:
    return document.kind is Kind.YAML and document.slice(node.span).startswith("*")


def _expect(document: DataDocument, change: Callable[[Any], Any]) -> Any:
    if document.root is None:
        raise CannotEdit("the file cannot be read as it is")
    return change(copy.deepcopy(document.root.plain()))


def _below(data: Any, path: KeyPath) -> Any:
    for step in path:
        data = data[step]
    return data


def _put(data: Any, path: KeyPath, value: Any) -> Any:
    if not path:
        return value
    step = path[0]
    if isinstance(step, int):
        if not isinstance(data, list) or not -len(data) <= step <= len(data):
            raise CannotEdit(f"there is no list with a place {step}")
        if step == len(data):
            data.append(None)
        data[step] = _put(data[step], path[1:], value)
        return data
    if isinstance(data, list):
        raise CannotEdit(f"a list has no key {step!r}")
    data = data if isinstance(data, dict) else {}
    data[step] = _put(data.get(step), path[1:], value)
    return data


def _drop(data: Any, path: KeyPath) -> Any:
    parent = _below(data, path[:-1])
    del parent[path[-1]]
    return data


def _rekey(data: Any, path: KeyPath, key: str) -> Any:
    parent = _below(data, path[:-1])
    parent[key] = parent.pop(path[-1])
    return data


def _checked(document: DataDocument, edits: tuple[Edit, ...], expected: object) -> tuple[Edit, ...]:
    text = apply(document.text, edits)
    again = read_again(document, text)
    if again.root is None or not same(again.root.plain(), expected):
        raise CannotEdit("the change cannot be written without changing something else")
    if document.kind is Kind.JSON and document.strict and not again.strict:
        raise CannotEdit("the change cannot be written in strict JSON")
    return edits


def _shown(path: KeyPath) -> str:
    return ".".join(str(step) for step in path)
