"""Edits of a script that are no setting: an argument, a call or a statement taken out or moved."""

from __future__ import annotations

from lintfit.documents import python_edits
from lintfit.documents.model import FileEdit
from lintfit.documents.python_reader import PythonDocument
from lintfit.sources.script.interpreter.values import Record
from lintfit.sources.script.model import Argument, Call
from lintfit.sources.script.source import ScriptSource
from lintfit.sources.script.writing import file_edits, moving
from lintfit.sources.script.writing.spread import made_with

Edits = tuple[FileEdit, ...]


def without_argument(source: ScriptSource, call: Call, argument: Argument) -> Edits:
    """Take a keyword argument out of a call, in the script or in a module of its repository that it draws in; out of
    the ``dict(...)`` that the call spreads, where it stands there."""
    node = _record(source, call).node
    document = source.reading.calls.document_of(node)
    if edits := python_edits.remove_keyword(document, node, argument.name):
        return file_edits.edits_in(document, edits)
    home = argument.place.document
    made = made_with(home, argument.place.span) if isinstance(home, PythonDocument) else None
    if made is None or not isinstance(home, PythonDocument):
        return ()
    return file_edits.edits_in(home, python_edits.remove_keyword(home, made, argument.name))


def without_call(source: ScriptSource, call: Call) -> Edits:
    """Take out a call that returns what it was called on: its statement, or its part of a longer expression."""
    return file_edits.remove_statement(source, _record(source, call))


def moved_above(source: ScriptSource, call: Call, target: Call) -> Edits | None:
    """Move the statement of a call above that of an earlier one; None where it cannot stand there, or where the call
    stands for what a parser makes and has no statement of its own."""
    records = source.reading.calls.records
    moved, above = records.get(id(call)), records.get(id(target))
    return moving.moved_above(source.document, moved, above) if moved is not None and above is not None else None


def _record(source: ScriptSource, call: Call) -> Record:
    return source.reading.calls.records[id(call)]
