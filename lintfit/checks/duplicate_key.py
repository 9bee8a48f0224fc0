from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.readers import reader_of
from lintfit.documents.model import DataDocument, Edit, Entry, Kind, Node, Span
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.settings.model import Place

_CONSEQUENCE = {
    Kind.JSON: "DeepSpeed raises ValueError, json.load keeps the last",
    Kind.YAML: "PyYAML silently keeps the last",
}


def check_file(context: FileContext) -> Iterator[Report]:
    document = context.document
    if not isinstance(document, DataDocument) or document.root is None or context.source is None:
        return
    for _, node in document.root.walk():
        first: dict[str, Entry] = {}
        for index, entry in enumerate(node.entries):
            earlier = first.setdefault(entry.key, entry)
            if earlier is not entry:
                yield _report(document, node, index, earlier, _severity(context))


def _severity(context: FileContext) -> Severity | None:
    """HF's Trainer and Accelerate load a JSON with ``json.load``, which keeps the last; DeepSpeed itself stops."""
    by_json = context.document.kind is Kind.JSON and reader_of(context.runs) in ("transformers", "accelerate")
    return Severity.WARNING if by_json else None


def _report(
    document: DataDocument, mapping: Node, index: int, earlier: Entry, severity: Severity | None = None
) -> Report:
    entry = mapping.entries[index]
    same = entry.value.plain() == earlier.value.plain()
    what = "twice with the same value" if same else "twice with different values"
    return Report(
        Place(document, entry.key_span),
        f'"{entry.key}" stands {what}: {_CONSEQUENCE.get(document.kind, "the last counts")}',
        severity=Severity.WARNING if same and document.kind is Kind.YAML else severity,
        related=(Related(Place(document, earlier.key_span), "first here"),),
        fix=_drop(document, mapping, index) if same else None,
        help="" if same else "keep the one that is meant",
    )


def _drop(document: DataDocument, mapping: Node, index: int) -> Fix | None:
    """Delete the repeated entry, with what separates it from the entry before it."""
    before, entry = mapping.entries[index - 1], mapping.entries[index]
    between = document.text[before.span.end : entry.span.start]
    if document.kind is not Kind.JSON or between.strip() != ",":
        return None
    return spliced(
        document, "delete the repetition", Applicability.SAFE, [Edit(Span(before.span.end, entry.span.end), "")]
    )
