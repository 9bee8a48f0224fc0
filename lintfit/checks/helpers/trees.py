"""What file rules ask of a JSON or YAML document's tree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.checks.helpers.context import FileContext
from lintfit.checks.helpers.fixes import offered, spliced
from lintfit.documents.model import DataDocument, Edit, Entry, KeyPath, Kind, Node, Span
from lintfit.findings.model import Applicability, Fix
from lintfit.schema.sections import least_stage, load, section_at


def data_of(context: FileContext, dialect: str) -> tuple[DataDocument, Node] | None:
    """The document and its root where it was read as this dialect and is a mapping, None for anything else."""
    document = context.document
    if context.source is None or context.source.dialect != dialect or not isinstance(document, DataDocument):
        return None
    root = document.root
    return (document, root) if root is not None and root.shape == "mapping" else None


def entries(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Entry]]:
    """Every ``key: value`` at and below a mapping, with its path, in document order; lists are not entered."""
    for entry in node.entries:
        below = (*path, entry.key)
        yield below, entry
        yield from entries(entry.value, below)


def dotted(path: KeyPath) -> str:
    return ".".join(str(step) for step in path)


def number(node: Node | None) -> int | float | None:
    """The number that a node holds; None for anything else, booleans included."""
    value = node.value if node is not None and node.shape == "scalar" else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def zero_stage(root: Node) -> int | None:
    """The stage that a DeepSpeed JSON states; 0 where it states none, None where that is not statically known.

    A bare ``true`` is stage 1 (DeepSpeed ``zero/config.py:read_zero_config_deprecated``).
    """
    section = root.get("zero_optimization")
    if section is None:
        return 0
    if isinstance(section.value, bool):
        return int(section.value)
    stage = section.get("stage")
    if section.shape != "mapping" or stage is None:
        return 0 if section.shape == "mapping" else None
    value = number(stage)
    return int(value) if value in (0, 1, 2, 3) else None


def asks_for_disk(root: Node) -> bool:
    """Whether an offload of a config goes to NVMe, which is all that DeepSpeed reads ``aio`` for."""
    blocks = ("offload_optimizer", "offload_param")
    devices = (root.get("zero_optimization", block, "device") for block in blocks)
    return any(device is not None and str(device.value).lower() == "nvme" for device in devices)


def of_higher_stage(root: Node, key: str) -> bool:
    """Whether a key of ``zero_optimization`` is read from a higher stage on than the config's."""
    stage = zero_stage(root)
    return stage is not None and stage < least_stage(section_at(load("deepspeed"), "zero_optimization"), key)


def written(value: object) -> str:
    """A value as JSON writes it, for a message."""
    return json.dumps(value, ensure_ascii=False)


def assigned(
    document: DataDocument, message: str, applicability: Applicability, assignments: Mapping[KeyPath, Any]
) -> Fix | None:
    """A fix that sets key paths to values (or to ``REMOVE``), None where the file cannot say it."""
    from lintfit.sources.data_writer import edits

    return offered(message, applicability, edits(document, dict(assignments)))


def without(document: DataDocument, message: str, applicability: Applicability, *paths: KeyPath) -> Fix | None:
    """A fix that deletes keys with their values."""
    from lintfit.sources.data_writer import REMOVE

    return assigned(document, message, applicability, dict.fromkeys(paths, REMOVE))


def renamed(document: DataDocument, key: Span, name: str, applicability: Applicability = Applicability.SAFE) -> Fix:
    """A fix that gives a key another name, in the quotes that it has."""
    old = document.slice(key)
    quote = old[0] if old[:1] in ('"', "'") else ""
    text = json.dumps(name) if document.kind is Kind.JSON and not quote else f"{quote}{name}{quote}"
    return spliced(document, f'rename it to "{name}"', applicability, [Edit(key, text)])
