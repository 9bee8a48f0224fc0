"""Files that shell scripts write themselves (:mod:`.here_documents`), as those who read them know them.

Two launches of one script each have a document of what it writes, as if each had a file of its own; whoever reads for
the same launch again gets the same document.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path

from lintfit.documents.model import DataDocument, Document, Kind
from lintfit.frozen import frozen


@frozen
class HereName:
    """What such a document goes by: whose it is, the script, which of the files that this writes, and as what."""

    owner: Hashable
    path: Path
    index: int
    kind: Kind


class HereFiles:
    """The documents of one workspace."""

    def __init__(self) -> None:
        self._documents: dict[HereName, DataDocument] = {}
        self._names: dict[int, HereName] = {}
        """By the identity of the document."""

    def get(self, name: HereName, make: Callable[[], DataDocument]) -> DataDocument:
        """The document of a name, made the first time that somebody asks for it."""
        found = self._documents.get(name)
        if found is None:
            found = self._documents[name] = make()
            self._names[id(found)] = name
        return found

    def name_of(self, document: Document) -> HereName | None:
        """The name of one of these documents; None for any other."""
        return self._names.get(id(document))
