"""How a rule says where else it looked, and what would mend what it found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lintfit.documents.model import Document, Edit, FileEdit
from lintfit.findings.model import Applicability, Fix, Related
from lintfit.settings.model import Place


def related(place: Place | None, message: str) -> tuple[Related, ...]:
    """A second place of a report; none where no file states what it speaks of."""
    return (Related(place, message),) if place is not None else ()


def offered(message: str, applicability: Applicability, edits: Sequence[FileEdit] | None) -> Fix | None:
    """A fix of these edits; None where there are none, because the files cannot say it."""
    return Fix(message, applicability, tuple(edits)) if edits else None


def spliced(document: Document, message: str, applicability: Applicability, edits: Iterable[Edit]) -> Fix:
    """A fix of edits in one document."""
    return Fix(message, applicability, tuple(FileEdit(document.path, edit, document) for edit in edits))
