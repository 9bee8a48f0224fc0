"""Config files that a script reads itself: ``yaml.safe_load(open(path))``, ``json.load``, ``OmegaConf.load``.

What such a file holds becomes values whose origin is their place in it, so that a finding points there and a fix is
written there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lintfit.documents import bounds
from lintfit.documents.data_edits import reader_of
from lintfit.documents.model import DataDocument, FileText, KeyPath, Kind, Node
from lintfit.sources.script.interpreter.origins import Datum
from lintfit.sources.script.interpreter.protocol import Evaluator
from lintfit.sources.script.interpreter.values import Const, Items, Object, Record, Table, Unknown, Value

_OPENS = frozenset({"open", "io.open", "codecs.open", "fsspec.open", "smart_open.open", "xopen.xopen"})
_LONGEST = 60_000
"""Characters of a text that is read as a config."""
_READ = 5
"""Characters of such a text that are read for one step: as long as ruamel.yaml takes for an expression."""
_READS = frozenset({"open", "read", "read_text", "read_bytes"})


def read(interpreter: Evaluator, record: Record, kind: Kind) -> Value:
    """What a reader of JSON or YAML returns for the file that it is handed, or for a text of the script's own."""
    text = record.value(0, "s", "stream")
    if isinstance(text, Const) and isinstance(text.value, str) and (kind is Kind.YAML or record.name == "loads"):
        return _of_text(interpreter, record, text.value, kind)
    return load(interpreter, record.value(0, "fp", "stream", "s", "file_", "f"), record, kind)


def _of_text(interpreter: Evaluator, record: Record, text: str, kind: Kind) -> Value:
    """What ``json.loads(text)`` and ``yaml.safe_load(text)`` make of a text that is known; it has no place to edit."""
    if len(text) > _LONGEST:
        return Unknown(record.node)
    interpreter.walk.step(len(text) // _READ)
    root = reader_of(kind)(FileText(Path("text"), text)).root
    return _of_plain(record, root.plain()) if root is not None else Unknown(record.node)


def _of_plain(record: Record, value: object) -> Value:
    if isinstance(value, dict):
        return Table(record.node, {key: _of_plain(record, item) for key, item in value.items()})
    if isinstance(value, list):
        return Items(record.node, [_of_plain(record, item) for item in value])
    return Const(record.node, value)


def load(interpreter: Evaluator, source: Value | None, record: Record, kind: Kind) -> Value:
    """The content of a file given by name, handle or text; not known where it is not at hand."""
    name = path_of(source)
    if name is None or interpreter.walk.branch.taken is False:
        return Unknown(record.node)
    document = open_named(interpreter, name, kind)
    if document is None or document.root is None:
        interpreter.walk.unread.append(name)
        return Unknown(record.node)
    return content(interpreter, document, document.root)


def content(interpreter: Evaluator, document: DataDocument, root: Node) -> Value:
    """A file's tree as values, which takes steps of the walk."""
    interpreter.walk.step(bounds.cost(items=2 * _values_in(root)))
    return of_node(document, root)


def open_named(interpreter: Evaluator, name: Const, kind: Kind) -> DataDocument | None:
    """The document of this name; None where it is not at hand."""
    opener = interpreter.walk.open_data
    return opener(name.value, kind) if opener is not None and isinstance(name.value, str) else None


def path_of(value: Value | None) -> Const | None:
    """The name behind a path, an open file or its text."""
    if isinstance(value, Const):
        return value if isinstance(value.value, str) else None
    if not isinstance(value, Object) or value.call is None:
        return None
    call = value.call
    if value.kind in _OPENS:
        return path_of(call.value(0, "file", "filename"))
    return path_of(call.receiver) if call.name in _READS else None


def _values_in(node: Node) -> int:
    """How many values a tree holds."""
    inside = (*(entry.value for entry in node.entries), *node.elements)
    return 1 + sum(map(_values_in, inside))


def of_node(document: DataDocument, node: Node, path: KeyPath = ()) -> Value:
    """A tree of a file as values."""
    origin = Datum(document, path, node.span)
    match node.shape:
        case "mapping":
            items: dict[Any, Value] = {e.key: of_node(document, e.value, (*path, e.key)) for e in node.entries}
            return Table(origin, items)
        case "sequence":
            return Items(origin, [of_node(document, item, (*path, i)) for i, item in enumerate(node.elements)])
    return Const(origin, node.value)
