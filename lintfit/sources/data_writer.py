"""Values put into a JSON or YAML document at key paths, several at once, as edits of its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lintfit.documents.model import DataDocument, Edit, FileEdit, KeyPath, Span


class _Remove(Enum):
    REMOVE = "remove"


REMOVE = _Remove.REMOVE
"""The value of an assignment that takes the key out."""

Assignments = dict[KeyPath, Any]
"""Values by key path, in the order in which they are carried out: a parent before what goes into it."""


def edits(document: DataDocument, assignments: Mapping[KeyPath, Any]) -> tuple[FileEdit, ...] | None:
    """The edits of ``document`` that carry out all assignments; None where its text cannot take one of them.

    Each assignment sees the result of those before it, so that two of them may add to the same new mapping.
    What is already so makes no edit.
    """
    from lintfit.documents.data_edits import CannotEdit, read_again, remove, set_value
    from lintfit.documents.edits import apply

    pieces = Pieces.whole(len(document.text))
    current = document
    for path, value in assignments.items():
        try:
            step = remove(current, path) if value is REMOVE else set_value(current, path, value)
        except CannotEdit:
            return None
        if not step:
            continue
        pieces.apply(step)
        current = read_again(current, apply(current.text, step))
    return tuple(FileEdit(document.path, edit, document) for edit in pieces.edits(len(document.text)))


def renamed(document: DataDocument, old: str, new: str) -> tuple[FileEdit, ...] | None:
    """The edits that give a key at the top another name in its place; None where the text cannot take that."""
    from lintfit.documents.data_edits import CannotEdit, rename

    try:
        return tuple(FileEdit(document.path, edit, document) for edit in rename(document, (old,), new))
    except CannotEdit:
        return None


@dataclass(slots=True)
class Pieces:
    """A text after some edits, as stretches of the original (spans) and new text between them.

    Edits of the edited text can so be told as edits of the original.
    """

    parts: list[Span | str] = field(default_factory=list)

    @classmethod
    def whole(cls, length: int) -> Pieces:
        """The original of ``length`` characters, untouched."""
        return cls([Span(0, length)])

    def apply(self, step: Iterable[Edit]) -> None:
        """Carry out edits whose spans are those of the text as it is now."""
        for edit in sorted(step, key=lambda edit: edit.span, reverse=True):
            head, rest = _split(self.parts, edit.span.start)
            _, tail = _split(rest, edit.span.end - edit.span.start)
            self.parts = [*head, edit.text, *tail]

    def edits(self, length: int) -> list[Edit]:
        """The edits of the original, of ``length`` characters, that give the text as it is now; none overlap."""
        found: list[Edit] = []
        position, new = 0, ""
        for part in [*self.parts, Span(length, length)]:
            if isinstance(part, str):
                new += part
            elif part.start == part.end and part.start != length:
                continue
            else:
                if new or part.start != position:
                    found.append(Edit(Span(position, part.start), new))
                position, new = part.end, ""
        return found


def _split(parts: list[Span | str], offset: int) -> tuple[list[Span | str], list[Span | str]]:
    """The parts before and after a character of the text that they make up."""
    for index, part in enumerate(parts):
        size = len(part) if isinstance(part, str) else part.end - part.start
        if offset < size:
            if isinstance(part, str):
                left, right = (part[:offset], part[offset:])
                return [*parts[:index], left], [right, *parts[index + 1 :]]
            middle = part.start + offset
            return [*parts[:index], Span(part.start, middle)], [Span(middle, part.end), *parts[index + 1 :]]
        offset -= size
    return parts, []
