"""One module per output format, found by name. A reporter turns a result into text and prints nothing itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.errors import defused
from lintfit.frozen import frozen

if TYPE_CHECKING:
    from lintfit.documents.model import Document
    from lintfit.findings.model import Finding
    from lintfit.findings.results import CheckResult
    from lintfit.settings.model import Place

REPORTERS: Mapping[str, str] = {
    "text": "lintfit.report.text",
    "concise": "lintfit.report.concise",
    "json": "lintfit.report.json",
    "sarif": "lintfit.report.sarif",
    "github": "lintfit.report.github",
    "gitlab": "lintfit.report.gitlab",
    "rdjson": "lintfit.report.rdjson",
    "junit": "lintfit.report.junit",
    "markdown": "lintfit.report.markdown",
    "github-review": "lintfit.report.github_review",
}
"""Module by format. Each defines ``render(result: CheckResult, view: View) -> str``, ending with a line break."""

_LINES = frozenset({"text", "concise", "markdown"})
"""Formats whose lines hold names and values as they are; the others escape them in their own way."""


Piece = tuple[str, str]
"""Text and the name of its style (a key of ``styled.STYLES``, or empty)."""

Line = list[Piece]
"""One line of a report for people."""


@frozen
class View:
    """How a result is to be shown. ``width`` is in columns; ``unicode`` False asks for ASCII bars and arrows."""

    color: bool = False
    width: int = 100
    unicode: bool = True
    unsafe_fixes: bool = False
    """Whether ``--unsafe-fixes`` is on: unsafe fixes then count as fixable."""
    diff: bool = False
    """Whether ``--diff`` is on: what was fixed was not written."""
    statistics: bool = False
    verbose: bool = False
    """Whether findings come in full, with their code, and what is assumed."""
    quiet: bool = False
    """Whether the last line is all that is wanted."""
    show_fixes: bool = False


def render(format_name: str, result: CheckResult, view: View) -> str:
    """The result in one of the formats of :data:`REPORTERS`."""
    text: str = import_module(REPORTERS[format_name]).render(result, view)
    return defused(text) if format_name in _LINES else text


def shown_path(path: Path | str) -> str:
    """A path as people and tools get it: relative to the working directory, with slashes."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive on Windows
        relative = str(path)
    return relative.replace(os.sep, "/")


def whole(document: Document) -> Document:
    """The file of a document as one text, in which the places of edits are those of the file."""
    if document.file.within is None:
        return document
    from lintfit.documents.model import Document as Whole
    from lintfit.documents.model import FileText, Kind

    return Whole(FileText(document.path, document.whole), Kind.JSON)


def in_cell(place: Place) -> str:
    """Of a place in a notebook the cell and its line, as ``(cell 3, line 2)`` behind a blank; else nothing."""
    cell = place.document.cell(place.span.start)
    return f" (cell {cell.cell}, line {cell.line})" if cell is not None else ""


def fixable(finding: Finding, unsafe_fixes: bool) -> bool:
    """Whether the flags at hand would mend this finding; it is then marked ``[*]``."""
    fix = finding.fix
    if fix is None or not fix.edits:
        return False
    return str(fix.applicability) == "safe" or (unsafe_fixes and str(fix.applicability) == "unsafe")


def clean(text: str) -> str:
    """Text from a file or a library made safe for one line of a terminal: no control or direction characters."""
    return text if text.isascii() and text.isprintable() else "".join(map(_clean_character, text))


def _clean_character(character: str) -> str:
    if character.isprintable() or character == "\u3000":
        return character
    return " " if character in "\t\n\r\x0b\x0c\x85\xa0\u2028\u2029" else "\N{REPLACEMENT CHARACTER}"
