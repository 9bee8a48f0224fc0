"""Fixes that put a key under another name or into the section that has it."""

from __future__ import annotations

from typing import Any

from lintfit.checks.helpers.trees import assigned, dotted, renamed
from lintfit.documents.model import DataDocument, Entry, KeyPath, Node
from lintfit.findings.model import Applicability, Fix
from lintfit.schema.sections import UnknownKey, load, section_at
from lintfit.suggest import is_typo

_ZERO = "zero_optimization"


def place_name(home: KeyPath) -> str:
    """A section in the words of a message."""
    return f'"{dotted(home)}"' if home else "the top level"


def rename(document: DataDocument, mapping: Node, entry: Entry, name: str) -> Fix | None:
    """Correct a slip of the pen; None where the words are too short to be sure, or where the key is there already.

    Unsafe, because the run then does what the key says.
    """
    if mapping.entry(name) is not None or not is_typo(entry.key, name):
        return None
    return renamed(document, entry.key_span, name, Applicability.UNSAFE)


def hint(unknown: UnknownKey) -> str:
    """What a key of no section may be meant for, as the end of a message; empty where nobody knows."""
    if unknown.home is not None:
        return f"; it belongs {'inside' if unknown.home else 'at'} {place_name(unknown.home)}"
    return f'; did you mean "{unknown.suggestion}"?' if unknown.suggestion else ""


def is_foreign(unknown: UnknownKey) -> bool:
    """Whether a key is none of the library's, of no release, section or spelling."""
    return unknown.since is None and unknown.home is None and unknown.suggestion is None


def stands_at_home(root: Node, unknown: UnknownKey) -> bool:
    """Whether all that a key of another section says is said there as well."""
    home = root.get(*unknown.home, unknown.entry.key) if unknown.home is not None else None
    if home is None or home.shape != unknown.entry.value.shape:
        return False
    leaves = ((path, node) for path, node in unknown.entry.value.walk() if node.shape == "scalar")
    there = ((home.get(*path) if path else home, node) for path, node in leaves)
    return all(found is not None and found.value == node.value for found, node in there)


def asks(node: Node) -> bool:
    """Whether a value asks for anything: a number, a word, or something that is on."""
    leaves = [each for _, each in node.walk() if each.shape == "scalar"] if node.shape != "scalar" else [node]
    return any(each.value not in (False, None, "", 0) for each in leaves)


def moved(document: DataDocument, root: Node, unknown: UnknownKey) -> Fix | None:
    """Move a key of a DeepSpeed JSON into the section that has it; None where that one holds it already.

    Safe where the library stops at the key as it stands, and for ZeRO's own keys, which decide where the states lie and
    not what is learned. Unsafe for anything else, which would begin to act.
    """
    if unknown.home is None:
        return None
    target: KeyPath = (*unknown.home, unknown.entry.key)
    parent = root.get(*unknown.home) if unknown.home else root
    if root.get(*target) is not None or (parent is not None and parent.shape != "mapping"):
        return None
    from lintfit.sources.data_writer import REMOVE

    schema = section_at(load("deepspeed"), *(str(step) for step in target))
    harmless = target[0] == _ZERO and not schema.get("x-changes-results", False)
    changes: dict[KeyPath, Any] = {unknown.path: REMOVE, target: unknown.entry.value.plain()}
    applicability = Applicability.SAFE if unknown.forbidden or harmless else Applicability.UNSAFE
    return assigned(document, f"move it to {place_name(unknown.home)}", applicability, changes)
