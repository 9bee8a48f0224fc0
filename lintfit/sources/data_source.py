"""What every source of JSON or YAML can do: find places by key path, and restate settings by key path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lintfit.documents.model import DataDocument, Entry, FileEdit, KeyPath, Node, Span
from lintfit.frozen import frozen
from lintfit.settings.model import Place, Setting
from lintfit.sources.values import Reader


@frozen
class Field:
    """Where a setting stands in a file, how it is read, and the engine that it needs to have an effect."""

    name: str
    path: KeyPath
    read: Reader
    engine: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DataSource:
    """One JSON or YAML document read as a dialect; subclasses say which key path a setting is written to."""

    document: DataDocument
    settings: Mapping[str, Setting]

    def node(self, *path: str | int) -> Node | None:
        """The value at a key path, or None where the file has none."""
        return self.document.root.get(*path) if self.document.root else None

    def entry(self, *path: str) -> Entry | None:
        """The ``key: value`` at a key path, or None."""
        parent = self.node(*path[:-1])
        return parent.entry(path[-1]) if parent else None

    def place(self, *path: str | int) -> Place | None:
        """The place of the value at a key path, or None."""
        node = self.node(*path)
        return Place(self.document, node.span) if node else None

    @property
    def start(self) -> Place:
        """The place to point at where nothing more exact is to blame: the first character."""
        offset = self.document.root.span.start if self.document.root else 0
        return Place(self.document, Span(offset, min(offset + 1, len(self.document.text))))

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """The edits that make the file say ``name = value``; None where it cannot."""
        return self.write_all({name: value})

    def write_all(self, changes: Mapping[str, Any]) -> tuple[FileEdit, ...] | None:
        """The edits that make the file say all of ``changes`` at once; None where it cannot say one of them."""
        from lintfit.sources.data_writer import Assignments, edits

        assignments: Assignments = {}
        for name, value in changes.items():
            found = self._assignments(name, value)
            if found is None:
                return None
            assignments.update(found)
        return edits(self.document, assignments)

    def _assignments(self, name: str, value: Any) -> dict[KeyPath, Any] | None:
        """The values by key path that say ``name = value``; None where the dialect cannot say it."""
        raise NotImplementedError
