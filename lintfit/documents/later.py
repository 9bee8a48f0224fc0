"""Documents that are parsed when somebody looks into them: what is known of their text already is asked of nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from lintfit.documents.model import DataDocument, Document, FileText, Kind
from lintfit.documents.shell_document import ShellDocument
from lintfit.frozen import frozen

Make = Callable[[], Document]
_OF_ALL = frozenset(each.name for each in fields(Document))
_PARSED: Mapping[type[Document], tuple[str, ...]] = {
    kind: tuple(each.name for each in fields(kind) if each.name not in _OF_ALL)
    for kind in (ShellDocument, DataDocument)
}
"""What is known of a document only once it is parsed."""


@frozen(eq=False)
class Expected:
    """What is known of a document that has no problems: the path that it goes by, what it asks for when it is parsed,
    and facts about its text (:attr:`Document.facts`)."""

    path: Path
    asked: frozenset[Path]
    facts: Mapping[str, Any]

    def document(self, file: FileText, kind: Kind, make: Make) -> Document:
        """The document, parsed only where its kind is worth no delay (a Python file is parsed late by itself)."""
        made: Document
        match kind:
            case Kind.SHELL:
                made = LaterShell(file, kind, make)
            case Kind.JSON | Kind.YAML:
                made = LaterData(file, kind, make)
            case Kind.PYTHON:
                made = make()
        made.facts.update(self.facts)
        return made


class LaterShell(ShellDocument):
    """A shell script that is parsed when it is looked into."""

    __slots__ = ("_make",)

    def __init__(self, file: FileText, kind: Kind, make: Make) -> None:
        _begin(self, file, kind)
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return _looked_into(self, name, ShellDocument, self._make)


class LaterData(DataDocument):
    """A JSON or YAML document that is parsed when it is looked into."""

    __slots__ = ("_make",)

    def __init__(self, file: FileText, kind: Kind, make: Make) -> None:
        _begin(self, file, kind)
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return _looked_into(self, name, DataDocument, self._make)


def written_later(document: Document, index: int, kind: Kind) -> LaterData:
    """The ``index``-th file that a shell script writes itself, of which nothing is wrong."""

    def make() -> Document:
        from lintfit.documents.here_documents import read_here

        assert isinstance(document, ShellDocument)
        return read_here(document, index, kind)

    return LaterData(document.file, kind, make)


def _begin(document: Document, file: FileText, kind: Kind) -> None:
    Document.__init__(document, file, kind)


def _looked_into(document: Document, name: str, kind: type[Document], make: Make) -> Any:
    """A field that nobody has asked for yet. Slots that are not set come here, and no others."""
    if name not in _PARSED[kind]:
        raise AttributeError(name)
    made = make()
    for each in _PARSED[kind]:
        setattr(document, each, getattr(made, each))
    return getattr(document, name)
