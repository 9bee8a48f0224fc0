"""The files of one run: found by the names that its launch, its script and its configs have for them, and read."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents.files import ReadError
from lintfit.documents.here_files import HereName
from lintfit.documents.markdown import is_page
from lintfit.documents.model import DataDocument, Document, Kind
from lintfit.documents.workspace import Workspace
from lintfit.run.discover import SUFFIXES
from lintfit.run.lacking import Lacking, handed
from lintfit.run.locate import Locator
from lintfit.run.model import Origin
from lintfit.sources import detect

if TYPE_CHECKING:
    from lintfit.documents.shell_document import ShellDocument
    from lintfit.sources.launchers.launch import Launch

_LONGEST_NAME = 500
_LONGEST_CONFIG = 60_000
"""Characters of a config that a script reads itself; what is longer is data."""


class RunFiles:
    """Reads the files of one run, from its origin outwards, and remembers which they were and which were lacking."""

    def __init__(self, origin: Origin, workspace: Workspace) -> None:
        self.origin, self.workspace = origin, workspace
        self.locator = Locator(origin.path, workspace, origin.partners)
        self.lacking = Lacking(self.locator)
        self.documents: list[Document] = []
        self.opened: list[Document] = []
        """Data that the script opens itself."""
        self.written: dict[tuple[int, Kind], Document] = {}
        """Files that the launch script writes, by their index and what they are read as."""

    @property
    def launch(self) -> Launch | None:
        """The launch whose names these are, once it was read."""
        return self.locator.launch

    def read(self, path: Path, kind: Kind | None = None, what: str = "") -> Document | None:
        """A document of this run; ``kind`` where its role says more than its name (``stage3.conf``), ``what`` it is to
        the run where that lacks it if it cannot be read."""
        if self.workspace.is_absent(path):
            return None
        try:
            document = self.workspace.read(path, kind)
        except ReadError as error:
            if what:
                self.lacking.cannot_read(what, error)
            return None
        if document not in self.documents:
            self.documents.append(document)
        return document

    def module(self, path: Path) -> Document | None:
        """A module that the script imports, of the project: a report would show what one outside holds. One that the
        launch's own file writes beside the script comes first."""
        writer, _ = self._writer()
        if writer is not None and writer.files:
            here = self.script_here(os.path.relpath(path, self.origin.path.parent).replace(os.sep, "/"))
            if here is not None:
                return here
        if self.workspace.is_absent(path) or (self.workspace.exists(path) and not self.is_near(path)):
            return None
        return self.read(path)

    def is_near(self, path: Path) -> bool:
        """Whether a file is of the project: below its root or the run's first folder, or named by the user."""
        return self.locator.is_near(path)

    def config(self, path: Path, kind: Kind | None, what: str) -> DataDocument | None:
        """A config by its name, parsed or not."""
        document = self.read(path, kind, what) if self.is_near(path) else None
        return document if isinstance(document, DataDocument) else None

    def text(self, name: str) -> str | None:
        """The text of a file that is none of the kinds that lintfit reads."""
        path = self.locator.find(name)
        try:
            return self.workspace.file(path).text if path is not None else None
        except ReadError:
            return None

    def open(self, name: str) -> Document | None:
        """A file that a front end opens: one that the launch's own file writes above it, else one of the tree."""
        here = self.here(name, kind) if (kind := SUFFIXES.get(Path(name).suffix)) in (Kind.JSON, Kind.YAML) else None
        if here is not None:
            return here
        name = self._filled_from(name)
        itself = self.origin.kind == "recipe" and name == self.origin.path.as_posix()
        path = self.origin.path if itself else self.locator.find(name)
        return self.read(path) if path is not None else None

    def data(self, name: str, kind: Kind) -> DataDocument | None:
        """A JSON or YAML file that the script reads itself."""
        here = self.here(name, kind)
        if here is not None:
            return here
        origin = self._filled_from(name)
        path = self.locator.find(origin) if len(origin) < _LONGEST_NAME and origin.isprintable() else None
        place = handed(self.launch, name)
        if path is None and place is not None:
            self.lacking.lack("the config", name, place)
        try:
            if path is None or len(self.workspace.file(path, kind).text) > _LONGEST_CONFIG:
                return None
        except ReadError as error:
            if place is not None:
                self.lacking.cannot_read("the config", error)
            return None
        document = self.read(path, kind)
        if not isinstance(document, DataDocument):
            return None
        if place is not None and document.root is None:
            self.lacking.cannot_parse("the config", document)
        if document not in self.opened and document.path != self.origin.path:
            self.opened.append(document)
        return document

    def here(self, name: str, kind: Kind) -> DataDocument | None:
        """A config that the launch script itself writes above its launch line, or a notebook for its own cells."""
        found = self._here(name, kind)
        return found if isinstance(found, DataDocument) else None

    def script_here(self, name: str) -> Document | None:
        """A Python script that is written in the same way."""
        return self._here(name, Kind.PYTHON)

    def _here(self, name: str, kind: Kind) -> Document | None:
        document, before = self._writer()
        if document is None or not document.files:
            return None
        from lintfit.documents.here_documents import find_here, read_here, read_here_script

        if is_page(document.path) and self.locator.find(name) is not None:
            return None  # a page shows a file that is there
        index = find_here(document, name, before)
        if index is None:
            return None
        if (index, kind) not in self.written:
            self.written[index, kind] = (
                read_here_script(document, index)
                if kind is Kind.PYTHON
                else self.workspace.here.get(
                    HereName(self.origin, document.path, index, kind), lambda: read_here(document, index, kind)
                )
            )
            self.documents.append(self.written[index, kind])
        return self.written[index, kind]

    def _filled_from(self, name: str) -> str:
        """The file that ``envsubst`` or ``cp`` makes one of above the launch line, else itself: what lies in the tree
        by its name is what another launch has left there."""
        if self.launch is None:
            return name
        wanted, before = posixpath.normpath(name), self.launch.place.span.start
        made = (each for each in self.launch.document.filled if each.start < before)
        found = [each.origin for each in made if posixpath.normpath(each.name) == wanted]
        return found[-1] if found and "$" not in found[-1] else name

    def _writer(self) -> tuple[ShellDocument | None, int]:
        """What may write files for this run, and up to where."""
        if self.launch is not None:
            document = self.launch.document
            return document, len(document.text) if is_page(document.path) else self.launch.place.span.start
        if not self.origin.in_notebook:
            return None, 0
        from lintfit.documents.shell_document import ShellDocument

        notebook = self.workspace.read(self.origin.path, Kind.SHELL)
        return (notebook, len(notebook.text)) if isinstance(notebook, ShellDocument) else (None, 0)

    def arguments(self, name: str) -> Document | None:
        """A file of words that add to the command line."""
        path = self.locator.find(name)
        if path is None and (place := handed(self.launch, f"@{name}")) is not None:
            self.lacking.lack("the file of arguments", name, place)
        return self.read(path, Kind.SHELL, "the file of arguments") if path is not None else None

    def partner(self, path: Path, what: str = "") -> DataDocument | None:
        """A config or recipe that is not yet taken for a document of the run; ``what`` as for :meth:`read`."""
        try:
            document = self.workspace.read(path)
        except ReadError as error:
            if what:
                self.lacking.cannot_read(what, error)
            return None
        return document if isinstance(document, DataDocument) else None

    def dialect(self, path: Path) -> str | None:
        document = self.partner(path)
        return detect.dialect(document) if document is not None else None
