"""What all that writes a script starts from: the script as it was read, and edits of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.model import Edit, FileEdit
from lintfit.sources.script.interpreter.values import Record
from lintfit.sources.script.reading.calls import Calls, whole

if TYPE_CHECKING:
    from lintfit.documents.python_reader import PythonDocument
    from lintfit.settings.model import Setting
    from lintfit.sources.script.interpreter.state import Walk
    from lintfit.sources.script.reading.collector import Reading


Edits = tuple[FileEdit, ...]


class Script(Protocol):
    """What writing needs of a script that was read (:class:`lintfit.sources.script.source.ScriptSource`)."""

    @property
    def settings(self) -> Mapping[str, Setting]: ...

    @property
    def reading(self) -> Reading: ...

    @property
    def walk(self) -> Walk: ...

    def new_flag(self, name: str, value: Any) -> Edits | None:
        """The edits that add a flag to the launch line; None where no launch line can be edited."""


def remove_statement(source: Script, record: Record) -> Edits:
    """Drop a call that returns what it was called on: its statement, or its part of a longer expression."""
    document = source.reading.calls.document_of(record.node)
    small = whole(record.statement, record.node)
    if small is not None:
        return edits_in(document, python_edits.remove_statement(document, small))
    place = source.reading.calls.statement(record).lines
    return edits_in(document, (Edit(place.span, ""),))


def edited(calls: Calls, node: cst.CSTNode, edit: Callable[..., Iterable[Edit]], *given: Any) -> Edits:
    """What one of ``python_edits`` does to a node in its file."""
    document = calls.document_of(node)
    return edits_in(document, edit(document, node, *given))


def edits_in(document: PythonDocument, edits: Iterable[Edit]) -> Edits:
    """Edits of one document; none where it cannot be edited without loss."""
    return tuple(FileEdit(document.path, edit, document) for edit in edits) if document.editable else ()
