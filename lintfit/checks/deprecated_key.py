"""The rule deprecated-key: see its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lintfit.catalog.deepspeed_keys import DEPRECATED_ZERO, REMOVED_TOP_LEVEL, REMOVED_ZERO
from lintfit.checks.context import FileContext, Report
from lintfit.checks.readers import older
from lintfit.checks.trees import assigned, data_of, dotted, renamed, without
from lintfit.documents.model import DataDocument, Entry, KeyPath, Node
from lintfit.findings import Applicability, Fix, Severity
from lintfit.run.model import Run
from lintfit.settings import Place

_ZERO = "zero_optimization"


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    if found is None:
        return
    document, root = found
    yield from _removed(document, root, context.runs)
    section = root.entry(_ZERO)
    if section is not None and isinstance(section.value.value, bool):
        yield _boolean(document, section)
    for old, new in DEPRECATED_ZERO.items():
        entry = section.value.entry(old) if section is not None else None
        if section is not None and entry is not None:
            yield _deprecated(document, section.value, entry, new)
    alias = root.entry("bfloat16")
    if alias is not None:
        yield _alias(document, root, alias)


def _removed(document: DataDocument, root: Node, runs: Sequence[Run]) -> Iterator[Report]:
    for parent, table in (((), REMOVED_TOP_LEVEL), ((_ZERO,), REMOVED_ZERO)):
        node = root.get(*parent)
        for entry in node.entries if node is not None else ():
            since = table.get(entry.key)
            if since is None:
                continue
            spared = older(runs, "deepspeed", since)
            if spared:
                continue
            path = (*parent, entry.key)
            yield Report(
                Place(document, entry.key_span),
                f'"{dotted(path)}" was removed: DeepSpeed {since} and later stop with DeepSpeedConfigError '
                "as soon as the key is there",
                severity=Severity.WARNING if spared is None else Severity.ERROR,
                fix=without(document, "delete it: it is switched off", Applicability.SAFE, path)
                if _is_off(entry.value)
                else None,
                help="delete it, or keep DeepSpeed below that version",
            )


def _is_off(node: Node) -> bool:
    """Whether a removed feature did nothing here even while it existed."""
    enabled = node.get("enabled") if node.shape == "mapping" else node
    return enabled is None or enabled.value in (False, None)


def _boolean(document: DataDocument, section: Entry) -> Report:
    stage = 1 if section.value.value else 0
    return Report(
        Place(document, section.value.span),
        f'"{_ZERO}": {str(section.value.value).lower()} is the form of 2020: it means stage {stage}, '
        "and accelerate and transformers cannot read a stage from it",
        fix=assigned(document, f'write it as {{"stage": {stage}}}', Applicability.SAFE, {(_ZERO,): {"stage": stage}}),
    )


def _deprecated(document: DataDocument, section: Node, entry: Entry, new: tuple[str, ...]) -> Report:
    place = Place(document, entry.key_span)
    both = [name for name in new if section.entry(name) is not None]
    if both and entry.key != "cpu_offload_use_pin_memory":
        return Report(
            place,
            f'"{entry.key}" is the old name of "{both[0]}", and both are there: DeepSpeed stops with an AssertionError',
            severity=Severity.ERROR,
            help=f'keep "{both[0]}" and delete "{entry.key}"',
        )
    if entry.key == "cpu_offload_use_pin_memory":
        message = f'"{entry.key}" is deprecated and its value is dropped; "pin_memory" inside "offload_…" replaces it'
    else:
        message = f'"{entry.key}" is deprecated; "{new[0]}" replaced it'
    return Report(place, message, fix=_successor(document, entry, new[0]))


def _successor(document: DataDocument, entry: Entry, new: str) -> Fix | None:
    old = (_ZERO, entry.key)
    if entry.key == "stage3_gather_fp16_weights_on_model_save":
        return Fix(f'rename it to "{new}"', Applicability.SAFE, renamed(document, entry.key_span, new))
    if entry.key == "cpu_offload_use_pin_memory" or entry.value.value is False:
        return without(document, "delete it: it has no effect", Applicability.SAFE, old)
    if entry.value.value is True:
        from lintfit.sources.data_writer import REMOVE

        changes: dict[KeyPath, Any] = {old: REMOVE, (_ZERO, new): {"device": "cpu"}}
        return assigned(document, f'write it as "{new}": {{"device": "cpu"}}', Applicability.SAFE, changes)
    return None


def _alias(document: DataDocument, root: Node, entry: Entry) -> Report:
    place = Place(document, entry.key_span)
    if root.entry("bf16") is not None:
        return Report(
            place,
            '"bfloat16" is the old name of "bf16"; both are there, and "bfloat16" is ignored',
            fix=without(document, 'delete "bfloat16"', Applicability.SAFE, ("bfloat16",)),
        )
    return Report(
        place,
        '"bfloat16" is the old name of "bf16"; transformers and accelerate only look for "bf16"',
        fix=Fix('rename it to "bf16"', Applicability.SAFE, renamed(document, entry.key_span, "bf16")),
    )
