"""Files that a shell script writes itself (``cat > ds.json <<EOF``), read as documents within the script's own file.

Such a document has the script's text and the offsets of it, so that findings and edits are those of the real file.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from lintfit.documents.data_edits import reader_of
from lintfit.documents.model import DataDocument, FileText, Kind, Node, Span
from lintfit.documents.shell_document import HereFile, ShellDocument
from lintfit.documents.shell_reader import read_shell
from lintfit.documents.written_commands import blank
from lintfit.frozen import frozen, replace

if TYPE_CHECKING:
    from lintfit.documents.python_reader import PythonDocument

_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|auto")


def find_here(document: ShellDocument, name: str, before: int) -> int | None:
    """The index of the file of this name that the script wrote last before an offset; None where it wrote none."""
    found = find_all_here(document, name, before)
    return found[0] if found else None


def find_all_here(document: ShellDocument, name: str, before: int) -> tuple[int, ...]:
    """The files of this name that may be there at an offset, last first: those of branches and what they replace."""
    wanted = posixpath.normpath(name)
    found: list[int] = []
    for index, file in reversed([*enumerate(document.files)]):
        if posixpath.normpath(file.name) == wanted and file.span.start < before:
            found.append(index)
            if not file.conditional:
                break
    return tuple(found)


def read_here(document: ShellDocument, index: int, kind: Kind) -> DataDocument:
    """The ``index``-th file that a script writes, as JSON or YAML."""
    file = document.files[index]
    masked, unfilled = _masked(document.text, file, kind)
    made = reader_of(kind)(replace(document.file, text=masked))
    made.file = document.file
    if made.root is not None:
        made.root = _widened(made.root, [place for place, _ in file.expansions])
    if unfilled:
        made.problems, made.strict = (), True
    made.reader = _Again(index, kind)
    return made


def read_here_script(document: ShellDocument, index: int) -> PythonDocument:
    """The same as a Python script. Where the shell fills something in, its own form is what is read."""
    from lintfit.documents.embedded import Embedding, Piece
    from lintfit.documents.python_reader import read_python

    span, within = document.files[index].span, document.file.within
    if within is None:
        within = Embedding(document.text, (Piece(0, len(document.text), 0, len(document.text)),))
    return read_python(replace(document.file, text=document.slice(span), within=within.part(span)))


@frozen
class _Again:
    """Reads the same file from the text of a changed script."""

    index: int
    kind: Kind

    def __call__(self, file: FileText) -> DataDocument:
        document = read_shell(file)
        if self.index >= len(document.files):
            return DataDocument(file, self.kind)
        return read_here(document, self.index, self.kind)


def _widened(node: Node, places: list[Span]) -> Node:
    """The tree with spans that cover the references whose values it holds."""

    def wide(span: Span) -> Span:
        end = next((place.end for place in places if place.start < span.end <= place.end), span.end)
        return Span(span.start, end)

    entries = tuple(replace(e, value=_widened(e.value, places), span=wide(e.span)) for e in node.entries)
    elements = tuple(_widened(element, places) for element in node.elements)
    return replace(node, span=wide(node.span), entries=entries, elements=elements) if places else node


def _masked(text: str, file: HereFile, kind: Kind) -> tuple[str, bool]:
    """The script with blanks for all that is not in the file, of the same length; whether a reference is left in it.

    A reference gives way to what it comes to where that is a number or a word of JSON and no longer than itself; in
    JSON, one that is not known to a string that means nothing.
    """
    span = file.span
    inside, unfilled = text[span.start : span.end].replace("\t", " "), False
    for place, value in file.expansions:
        start, end = place.start - span.start, place.end - span.start
        if value is not None and _SCALAR.fullmatch(value) and len(value) <= end - start:
            inside = inside[:start] + value.ljust(end - start) + inside[end:]
        else:
            unfilled = True
            in_quotes = inside.count('"', inside.rfind("\n", 0, start) + 1, start) % 2
            if kind is Kind.JSON and not in_quotes and end - start >= 2:
                inside = inside[:start] + '"' + "$" * (end - start - 2) + '"' + inside[end:]
    return blank(text[: span.start]) + inside + blank(text[span.end :]), unfilled
