"""The schemas of the DeepSpeed JSON and the Accelerate file, and a walk that finds the keys they do not have.

The schemas are JSON Schema (draft 2020-12) with a few markers of their own: ``x-unknown-keys`` says what the library
does with a key that a section lacks (``refused``, ``ignored``, ``passed on``), ``x-renamed-to`` and ``x-removed-in``
what became of an old key, ``x-forbidden-since`` from which version on a section refuses unknown keys, ``x-ignored``
that a known key has no effect, ``x-auto`` what becomes of ``"auto"`` (``filled`` by transformers and Accelerate,
``default``: dropped by DeepSpeed and refused by the others).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from lintfit.documents.model import Entry, KeyPath, Node
from lintfit.resources import resource_dir

Schema = Mapping[str, Any]

SchemaName = Literal["deepspeed", "accelerate"]

MAX_DISTANCE = 2
"""Edits between a misspelt key and the one that is suggested for it."""

_SHORT = 4
"""Up to this length a single edit already makes another word, so that only one is allowed."""


@dataclass(frozen=True, slots=True, eq=False)
class UnknownKey:
    """A key that its section does not have. ``path`` ends with the key.

    ``suggestion`` is the key of the same section that it was probably meant to be; ``home`` the path of the only
    section that has a key of this very name. ``forbidden`` says whether the library stops at it (else it ignores
    it), ``forbidden_since`` from which version on, where that was not always so.
    """

    path: KeyPath
    entry: Entry
    suggestion: str | None
    home: KeyPath | None
    forbidden: bool
    forbidden_since: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OutdatedKey:
    """A key that still has a meaning, but an old one: renamed, removed or deprecated."""

    path: KeyPath
    entry: Entry
    renamed_to: str | None
    removed_in: str | None
    description: str


@cache
def load(name: SchemaName) -> Schema:
    """The schema of one dialect.

    Raises LintfitError where the installation lacks the folder of schemas.
    """
    path = resource_dir("schemas") / f"{name}.schema.json"
    loaded: Schema = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def unknown_keys(root: Node, schema: Schema) -> Iterator[UnknownKey]:
    """The keys below ``root`` that the schema does not know, in document order.

    Keys of other tools are passed over: comments written as keys, and the top level of a GPT-NeoX or Megatron
    config, which holds its own keys beside DeepSpeed's.
    """
    from lintfit.sources.detect import is_megatron

    shared = is_megatron(entry.key for entry in root.entries)
    top = _resolve(schema, schema, root)
    for path, entry, section, found in _walk(root, top, schema, ()):
        if found is not None or (shared and len(path) == 1):
            continue
        fate = section.get("x-unknown-keys")
        if fate not in ("refused", "ignored"):
            continue
        yield UnknownKey(
            path=path,
            entry=entry,
            suggestion=nearest(entry.key, _current(section)),
            home=_home(entry.key, top, path[:-1]),
            forbidden=fate == "refused",
            forbidden_since=section.get("x-forbidden-since"),
        )


def outdated_keys(root: Node, schema: Schema) -> Iterator[OutdatedKey]:
    """The keys below ``root`` that the schema marks as deprecated, in document order."""
    for path, entry, _, found in _walk(root, _resolve(schema, schema, root), schema, ()):
        if found is not None and found.get("deprecated"):
            yield OutdatedKey(
                path, entry, found.get("x-renamed-to"), found.get("x-removed-in"), found.get("description", "")
            )


def nearest(key: str, known: Iterable[str]) -> str | None:
    """The known key at the smallest edit distance of at most two from a misspelt one; None where none is so near."""
    folded = _fold(key)
    allowed = 1 if len(folded) <= _SHORT else MAX_DISTANCE
    ranked = ((distance(folded, _fold(name), allowed), name) for name in known)
    best = min((pair for pair in ranked if pair[0] <= allowed), default=None)
    return best[1] if best else None


def distance(left: str, right: str, limit: int = 10**6) -> int:
    """The least number of insertions, deletions, replacements and swaps of neighbours that make ``right`` of ``left``.

    Some number above ``limit`` where it is more than that.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def _fold(key: str) -> str:
    return key.lower().replace("-", "_")


def _current(section: Schema) -> list[str]:
    """The keys of a section that one would still write."""
    properties = section.get("properties", {})
    return [name for name, child in properties.items() if not child.get("deprecated")]


def _walk(
    node: Node, section: Schema, whole: Schema, path: KeyPath
) -> Iterator[tuple[KeyPath, Entry, Schema, Schema | None]]:
    properties = section.get("properties")
    if node.shape != "mapping" or properties is None:
        return
    patterns = section.get("patternProperties", {})
    for entry in node.entries:
        here = (*path, entry.key)
        found = properties.get(entry.key)
        if found is None:
            found = next((child for pattern, child in patterns.items() if re.search(pattern, entry.key)), None)
        yield here, entry, section, found
        if found is not None:
            yield from _walk(entry.value, _resolve(found, whole, entry.value), whole, here)


def _resolve(section: Schema, whole: Schema, node: Node) -> Schema:
    """The subschema that describes a node: references followed, the top's ``if`` decided by its one key."""
    if "properties" not in section and "if" in section:
        condition = section["if"]["properties"]
        matches = all(
            (value := node.get(key)) is not None and value.value == wanted["const"] for key, wanted in condition.items()
        )
        return _resolve(section["then" if matches else "else"], whole, node)
    reference = section.get("$ref")
    if reference is None:
        return section
    target: Any = whole
    for step in reference.removeprefix("#/").split("/"):
        target = target[step]
    return _resolve(target, whole, node)


def _home(key: str, top: Schema, section: KeyPath) -> KeyPath | None:
    """The path of the one section elsewhere that has a key of this name; None where there is none or several."""
    homes = [path for path, names in _index(top, ()) if key in names and path != section]
    return homes[0] if len(homes) == 1 else None


def _index(section: Schema, path: KeyPath) -> Iterator[tuple[KeyPath, set[str]]]:
    properties = section.get("properties", {})
    names = {name for name, child in properties.items() if not child.get("deprecated")}
    yield path, names
    for name, child in properties.items():
        if "properties" in child and not child.get("deprecated"):
            yield from _index(child, (*path, name))
