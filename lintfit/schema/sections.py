"""The schemas of the DeepSpeed JSON and the Accelerate file, and walks that find what they do not allow.

``schemas/*.schema.json`` are JSON Schema (draft 2020-12) and the only table of keys. What JSON Schema has no word for
stands in markers of their own:

=====================  ==================================================================================
``x-version``          the release of the library that the schema was read from
``x-unknown-keys``     what the library does with a key that a section lacks: ``refused``, ``ignored``, ``passed on``
``x-forbidden-since``  from which version on the section is read at all, or refuses what it lacks
``x-since``            the first release that knows the key
``x-removed-in``       the first release that no longer does; with ``"not": {}`` its mere presence stops the run
``x-renamed-to``       what an old key is called today
``x-alias-of``         another spelling that means the same
``x-never-read``       keys that stand in many copied files and that no release has read in that section
``x-ignored``          why a known key has no effect
``x-stages``           the ZeRO stages that read the key
``x-auto-filled-by``   who replaces the word ``"auto"``
``x-overwritten-by``   who puts a value of its own in place of whatever is written
``x-stage-value``      the value that stops the run at any other stage, with ``x-stage-error``
``x-auto-dropped``     DeepSpeed takes ``"auto"`` in place of the section for its default
``x-checked``          whether the library checks the value when it reads the file, or the types that it refuses
``x-any-case``         the library ignores upper and lower case
``x-exported``         the value goes through an environment variable, where ``8`` and ``"8"`` are the same
``x-no-boolean``       a number that the library does not take from true and false
``x-false-is-zero``    a number that is only compared, so that false does what 0 does
``x-range-since``      from which version on the range is checked
``x-integer-since``    from which version on a number must be whole
``x-range-unchecked``  the library checks the type, not the range
``x-calculated``       a number that the library does not check, and calculates with: another type stops there
``x-warned``           the library warns of a value that it does not know, and takes the default
``x-not-beside``       the key that excludes this one
``x-changes-results``  the key changes what is learned, not only where and how fast
=====================  ==================================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Literal

from lintfit.documents.model import Entry, KeyPath, Node
from lintfit.frozen import frozen
from lintfit.memo import Memo
from lintfit.resources import packaged, resource_dir
from lintfit.schema.megatron import is_megatron
from lintfit.suggest import nearest

Schema = Mapping[str, Any]

SchemaName = Literal["deepspeed", "accelerate"]

Older = Callable[[str], bool | None]
"""Whether the installed library is older than a version; None where its version is not known."""


def newest(_: str) -> bool | None:
    """Nobody said which version is installed: the newest is taken."""
    return None


@frozen(eq=False)
class Key:
    """One key of a document. ``path`` ends with it; ``schema`` is None where ``section`` does not have it."""

    path: KeyPath
    entry: Entry
    section: Schema
    schema: Schema | None


@frozen(eq=False)
class UnknownKey:
    """A key that its section does not have, or not yet. ``path`` ends with the key.

    ``suggestion`` is the key of the same section that it was probably meant to be; ``home`` the path of the only
    section that has a key of this very name (empty for the top level). ``forbidden`` says whether the library stops
    at it (else it ignores it), ``forbidden_since`` from which version on, where that was not always so. ``since`` is
    the first version that knows the key, where the installed one is older. ``never_read``: no release ever read it.
    """

    path: KeyPath
    entry: Entry
    section: Schema
    suggestion: str | None
    home: KeyPath | None
    forbidden: bool
    forbidden_since: str | None = None
    since: str | None = None
    never_read: bool = False


@frozen(eq=False)
class OutdatedKey:
    """A key that the schema knows as an old one: renamed, removed or deprecated.

    ``stops`` says whether the library stops at it (from ``removed_in`` on); else it reads or ignores it.
    """

    path: KeyPath
    entry: Entry
    renamed_to: str | None
    removed_in: str | None
    stops: bool
    description: str


@cache
def load(name: SchemaName) -> Schema:
    """The schema of one dialect.

    Raises LintfitError where the installation lacks the folder of schemas.
    """
    loaded: Schema = json.loads(packaged(resource_dir("schemas") / f"{name}.schema.json"))
    return loaded


def section_at(schema: Schema, *path: str) -> Schema:
    """The part of a schema that describes the value at a path. Raises KeyError where there is none."""
    found = schema["$defs"]["cluster"] if "properties" not in schema else schema
    for step in path:
        found = _referenced(found["properties"][step], schema)
    return found


def least_stage(section: Schema, key: str) -> int:
    """The lowest ZeRO stage that reads a key of a section; 0 where all do, or where the section has no such key."""
    return int(min(section["properties"].get(key, {}).get("x-stages", (0,))))


def keys(root: Node, schema: Schema, older: Older = newest) -> Iterator[Key]:
    """Every key at and below ``root``, in document order; what is below an unknown, removed or newer key is not."""
    yield from _walk(root, resolved(schema, schema, root), schema, (), older)


_OTHER_WORDS = frozenset({"fp32"})
"""Keys that no schema has and that mean the opposite of the one that is spelt like them (``fp16``)."""


def unknown_keys(root: Node, schema: Schema, older: Older = newest) -> Iterator[UnknownKey]:
    """The keys below ``root`` that the schema does not know, or that are newer than the library, in document order.

    Keys of other tools are passed over: comments written as keys, and the top level of a GPT-NeoX or Megatron
    config, which holds its own keys beside DeepSpeed's.
    """
    shared = is_megatron(entry.key for entry in root.entries)
    top = resolved(schema, schema, root)
    for key in keys(root, schema, older):
        fate = key.section.get("x-unknown-keys")
        since = _newer(key.schema, older) if key.schema is not None else None
        if fate not in ("refused", "ignored") or (shared and len(key.path) == 1):
            continue
        if key.schema is not None and since is None:
            continue
        forbidden_since = key.section.get("x-forbidden-since")
        yield UnknownKey(
            path=key.path,
            entry=key.entry,
            section=key.section,
            suggestion=None if since else _suggested(key),
            home=None if since else home_of(key.entry.key, schema, top, key.path[:-1]),
            forbidden=fate == "refused" and not (forbidden_since and older(forbidden_since)) and not _dropped(key),
            forbidden_since=forbidden_since,
            since=since,
            never_read=key.entry.key in key.section.get("x-never-read", ()),
        )


@lru_cache(maxsize=4096)
def _nearest(word: str, choices: tuple[str, ...]) -> str | None:
    """The same slip stands in every config that was copied from one, and two rules ask for it."""
    return nearest(word, choices)


def _suggested(key: Key) -> str | None:
    word = key.entry.key
    return None if word in _OTHER_WORDS else _nearest(word, tuple(current(key.section)))


def outdated_keys(root: Node, schema: Schema, older: Older = newest) -> Iterator[OutdatedKey]:
    """The keys below ``root`` that the schema marks as deprecated, in document order."""
    for key in keys(root, schema, older):
        found = key.schema
        if found is not None and found.get("deprecated") and _newer(found, older) is None:
            yield OutdatedKey(
                path=key.path,
                entry=key.entry,
                renamed_to=found.get("x-renamed-to"),
                removed_in=found.get("x-removed-in"),
                stops=found.get("not") == {},
                description=found.get("description", ""),
            )


def newer_than(schema: Schema, older: Older) -> bool:
    """Whether the installed library is newer than the one that the schema was read from."""
    *head, last = schema["x-version"].split(".")
    return older(".".join([*head, str(int(last) + 1)])) is False


def current(section: Schema) -> list[str]:
    """The keys of a section that one would still write."""
    properties = section.get("properties", {})
    return [name for name, child in properties.items() if not child.get("deprecated")]


def resolved(section: Schema, whole: Schema, node: Node) -> Schema:
    """The subschema that describes a node: references followed, the top's ``if`` decided by its one key."""
    if "properties" not in section and "if" in section:
        condition = section["if"]["properties"]
        matches = all(
            (value := node.get(key)) is not None and value.value == wanted["const"] for key, wanted in condition.items()
        )
        return resolved(section["then" if matches else "else"], whole, node)
    return _referenced(section, whole)


def home_of(key: str, whole: Schema, top: Schema, section: KeyPath) -> KeyPath | None:
    """The path of the one section elsewhere that has a key of this name; None where there is none or several."""
    homes = [
        path
        for path, names in _INDEXES.get(top, "", lambda: tuple(_index(top, whole, ())))
        if key in names and path != section
    ]
    return homes[0] if len(homes) == 1 else None


def _dropped(key: Key) -> bool:
    """Whether DeepSpeed's models drop a key before they look at its name: every ``"auto"`` in a section."""
    return len(key.path) > 1 and key.entry.value.value == "auto"


def _walk(node: Node, section: Schema, whole: Schema, path: KeyPath, older: Older) -> Iterator[Key]:
    properties = section.get("properties")
    if node.shape != "mapping" or properties is None:
        return
    patterns = section.get("patternProperties", {})
    for entry in node.entries:
        here = (*path, entry.key)
        found = properties.get(entry.key)
        if found is None:
            found = next((child for pattern, child in patterns.items() if re.search(pattern, entry.key)), None)
        yield Key(here, entry, section, found)
        if found is None or "x-removed-in" in found or _newer(found, older) is not None or superseded(node, found):
            continue
        yield from _walk(entry.value, resolved(found, whole, entry.value), whole, here, older)


def superseded(mapping: Node, schema: Schema) -> bool:
    """Whether the key that took an old one's place stands beside it, so that nobody reads the old one's value.

    A null in its place is as good as nothing (``precision_config.py:get_bfloat16_config``).
    """
    new = schema.get("x-renamed-to")
    return bool(schema.get("deprecated")) and new is not None and mapping.states(new)


def _newer(schema: Schema, older: Older) -> str | None:
    """The first version that knows a key, where the installed one is older."""
    since: str | None = schema.get("x-since")
    return since if since is not None and older(since) else None


def _referenced(section: Schema, whole: Schema) -> Schema:
    reference = section.get("$ref")
    if reference is None:
        return section
    target: Any = whole
    for step in reference.removeprefix("#/").split("/"):
        target = target[step]
    return _referenced(target, whole)


_INDEXES: Memo[tuple[tuple[KeyPath, set[str]], ...]] = Memo(16)
"""All sections of a schema with their keys, which every unknown key is looked for in."""


def _index(section: Schema, whole: Schema, path: KeyPath) -> Iterator[tuple[KeyPath, set[str]]]:
    properties = section.get("properties", {})
    yield path, {name for name, child in properties.items() if not child.get("deprecated")}
    for name, child in properties.items():
        if "properties" in child and not child.get("deprecated"):
            yield from _index(child, whole, (*path, name))
