from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.checks.helpers.launched import leads_to
from lintfit.checks.helpers.readers import flag_given, installed, reader_of
from lintfit.documents.model import DataDocument, Edit, Entry, Kind, Node, Span
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.schema.sections import load, unknown_keys
from lintfit.settings.model import Place

_CONSEQUENCE = {
    Kind.JSON: "DeepSpeed raises ValueError, json.load keeps the last",
    Kind.YAML: "PyYAML silently keeps the last",
}


def check_file(context: FileContext) -> Iterator[Report]:
    document = context.document
    if not isinstance(document, DataDocument) or document.root is None or context.source is None:
        return
    found = [*_repeated(document.root)]
    if not found:
        return
    reader = reader_of(context.runs)
    stops = document.kind is Kind.JSON and reader not in ("transformers", "accelerate")
    led_to = context.named or any(map(leads_to, context.runs))
    surely = stops and led_to and (context.named or reader == "deepspeed")
    # HF's Trainer and Accelerate load a JSON with json.load, which keeps the last; DeepSpeed itself stops.
    unread = frozenset[Entry]() if stops else _unread(context, document.root)
    for node, index, earlier in found:
        if earlier not in unread and node.entries[index] not in unread:
            given = document.kind is Kind.YAML and node is document.root and flag_given(context, earlier.key)
            loses = _says_otherwise(earlier, node.entries[index]) and not given
            mild = Severity.WARNING if loses and (led_to or not stops) else Severity.INFO
            yield _report(document, node, index, earlier, None if surely else mild)


def _says_otherwise(earlier: Entry, entry: Entry) -> bool:
    """Whether a value is lost: not where the key was only left empty before, or has the same one again."""
    empty = earlier.value.shape == "scalar" and earlier.value.value is None
    return not empty and earlier.value.plain() != entry.value.plain()


def _repeated(root: Node) -> Iterator[tuple[Node, int, Entry]]:
    """Mappings with the index of an entry whose key stands there before, and the first that has it."""
    for _, node in root.walk():
        first: dict[str, Entry] = {}
        for index, entry in enumerate(node.entries):
            earlier = first.setdefault(entry.key, entry)
            if earlier is not entry:
                yield node, index, earlier


def _unread(context: FileContext, root: Node) -> frozenset[Entry]:
    """The keys that the reader passes over, with all that stands below them."""
    dialect = context.source.dialect if context.source is not None else None
    if dialect not in ("deepspeed", "accelerate"):
        return frozenset()
    unknown = unknown_keys(root, load(dialect), installed(context.runs, dialect))
    passed = [key.entry for key in unknown if not key.forbidden]
    below = (entry for top in passed for _, node in top.value.walk() for entry in node.entries)
    return frozenset((*passed, *below))


def _report(
    document: DataDocument, mapping: Node, index: int, earlier: Entry, severity: Severity | None = None
) -> Report:
    entry = mapping.entries[index]
    same = entry.value.plain() == earlier.value.plain()
    what = "twice with the same value" if same else "twice with different values"
    return Report(
        Place(document, entry.key_span),
        f'"{entry.key}" stands {what}: {_CONSEQUENCE.get(document.kind, "the last counts")}',
        severity=severity,
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
