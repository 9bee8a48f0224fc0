"""The rule auto-not-resolved: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import FileContext, Report
from lintfit.checks.readers import Reader, older, reader_of
from lintfit.checks.trees import data_of, dotted, entries, without
from lintfit.documents.model import DataDocument, Entry
from lintfit.findings import Applicability, Severity
from lintfit.schemas import Key, keys, load
from lintfit.settings import Place

_BATCH = frozenset({"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
_AUTO_IS_A_VALUE = frozenset({"zenflow", "autotuning", "tensor_parallel", "compile", "data_types"})
"""Sections in which DeepSpeed itself gives the word ``auto`` a meaning."""


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    reader = reader_of(context.runs)
    if found is None or reader is None:
        return
    document, root = found
    described = {key.path: key for key in keys(root, load("deepspeed"))}
    for path, entry in entries(root):
        if entry.value.value == "auto":
            report = (
                _raw(document, path, entry, described.get(path), older(context.runs, "deepspeed", "0.17.1"))
                if reader == "deepspeed"
                else _hugging_face(document, path, entry, described.get(path), reader)
            )
            if report is not None:
                yield report


def _fills(key: Key | None, reader: Reader) -> bool:
    """Whether the reader replaces the word; the Trainer goes through accelerate's plugin, so that both fill there."""
    fillers = key.schema.get("x-auto-filled-by", ()) if key is not None and key.schema is not None else ()
    return bool(fillers) if reader == "transformers" else reader in fillers


def _hugging_face(
    document: DataDocument, path: tuple[str, ...], entry: Entry, described: Key | None, reader: Reader
) -> Report | None:
    if _fills(described, reader):
        return None
    return Report(
        Place(document, entry.value.span),
        f'nothing fills "auto" in "{dotted(path)}": accelerate stops with ValueError '
        f'"`{dotted(path)}` not found in kwargs"',
        fix=without(document, "delete the key, so that DeepSpeed's default holds", Applicability.UNSAFE, path),
        help="write a value, or delete the key for DeepSpeed's default",
    )


def _raw(
    document: DataDocument, path: tuple[str, ...], entry: Entry, described: Key | None, before_0_17_1: bool | None
) -> Report | None:
    key = dotted(path)
    place = Place(document, entry.value.span)
    if path[0] in _AUTO_IS_A_VALUE or "zenflow" in path:
        return None
    if key in _BATCH:
        return Report(
            place,
            f'deepspeed.initialize does not fill "auto": "{key}": "auto" stops with a TypeError',
            help="write the number that the script uses",
        )
    if key in ("fp16.enabled", "bf16.enabled"):
        return _raw_precision(place, key, before_0_17_1)
    if described is not None and described.section.get("x-unknown-keys") == "refused":
        return Report(
            place,
            f'deepspeed.initialize does not fill "auto": "{key}" falls back to DeepSpeed\'s default',
            severity=Severity.WARNING,
            fix=without(document, "delete the key: the default holds already", Applicability.SAFE, path),
        )
    return Report(
        place,
        f'deepspeed.initialize does not fill "auto": "{key}" stays the word "auto" and fails where it is used',
        help="write a value, or delete the key",
    )


def _raw_precision(place: Place, key: str, before_0_17_1: bool | None) -> Report:
    message = f'deepspeed.initialize does not fill "auto": "{key}" is off, and the run trains in fp32'
    if before_0_17_1:
        message = f'"{key}": "auto" is taken for true before DeepSpeed 0.17.1 and for false from then on'
    return Report(place, message, help="write true or false")
