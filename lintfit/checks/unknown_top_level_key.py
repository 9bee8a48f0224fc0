"""The rule unknown-top-level-key: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog.deepspeed_keys import FOREIGN_TOP_LEVEL, REMOVED_TOP_LEVEL, SECTIONS, TOP_LEVEL
from lintfit.checks.context import FileContext, Report
from lintfit.checks.spelling import is_typo, nearest
from lintfit.checks.trees import data_of, renamed
from lintfit.documents.model import DataDocument, Entry, Node
from lintfit.findings import Applicability, Fix
from lintfit.settings import Place
from lintfit.sources.detect import is_megatron


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    if found is None:
        return
    document, root = found
    if is_megatron(entry.key for entry in root.entries):
        return
    for entry in root.entries:
        key = entry.key
        if key not in TOP_LEVEL and key not in REMOVED_TOP_LEVEL and not _is_meant(key):
            yield _report(document, root, entry)


def _is_meant(key: str) -> bool:
    """Keys that DeepSpeed ignores and that somebody put there on purpose."""
    return key in FOREIGN_TOP_LEVEL or key.startswith(("_", "$", "//", "#")) or "comment" in key.lower()


def _report(document: DataDocument, root: Node, entry: Entry) -> Report:
    place = Place(document, entry.key_span)
    near = nearest(entry.key, TOP_LEVEL)
    home = next((path for path, keys in SECTIONS.items() if entry.key in keys), None)
    ignored = f'DeepSpeed has no top-level key "{entry.key}" and ignores it'
    if near is not None and entry.key != near:
        return Report(place, f'{ignored}; did you mean "{near}"?', fix=_rename(document, root, entry, near))
    if home is not None:
        section = ".".join(home)
        return Report(place, f'{ignored}; it belongs inside "{section}"', help=f'move it into "{section}"')
    return Report(place, ignored, help="delete it, or write the key that it was meant to be")


def _rename(document: DataDocument, root: Node, entry: Entry, near: str) -> Fix | None:
    if root.entry(near) is not None or not is_typo(entry.key, near):
        return None
    return Fix(f'rename it to "{near}"', Applicability.UNSAFE, renamed(document, entry.key_span, near))
