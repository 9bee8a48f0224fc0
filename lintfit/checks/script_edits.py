"""Edits of a script that are no setting: an argument, a call or a statement taken out or moved."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.model import Edit, Span
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.findings import FileEdit
from lintfit.sources.python import writer
from lintfit.sources.python.values import Record
from lintfit.sources.script import ScriptSource
from lintfit.sources.script_model import Argument, Call

Edits = tuple[FileEdit, ...]


def without_argument(source: ScriptSource, call: Call, argument: Argument) -> Edits:
    """Take a keyword argument out of a call, in the script or in a module of its repository that it draws in."""
    node = _record(source, call).node
    document = source.reading.calls.document_of(node)
    return writer.edits_in(document, python_edits.remove_keyword(document, node, argument.name))


def without_call(source: ScriptSource, call: Call) -> Edits:
    """Take out a call that returns what it was called on: its statement, or its part of a longer expression."""
    return writer.remove_statement(source, _record(source, call))


def moved_above(source: ScriptSource, call: Call, target: Call) -> Edits | None:
    """Move the statement of a call above that of an earlier one.

    None where the two do not stand in one block, or where it needs something that is bound between them.
    """
    document = source.document
    statement, above = _record(source, call).statement, _record(source, target).statement
    if statement is None or above is None or not document.editable:
        return None
    block = document.parent(statement)
    if block is None or block is not document.parent(above):
        return None
    between = _between(block, above, statement)
    if between is None or not _names(statement).isdisjoint(name for node in between for name in _bound(node)):
        return None
    code = _code(document, statement)
    if code is None:
        return None
    inserted = python_edits.insert_statement_before(document, above, code)
    removed = python_edits.remove_statement(document, statement)
    return _in_file(source, _with_blank_lines(document.text, document.file.newline, inserted, removed))


_BLANK_LINES_ABOVE = re.compile(r"(?<=\n)(?:[ \t]*\r?\n)+\Z")
_BLANK_LINES_BELOW = re.compile(r"(?:[ \t]*\r?\n)+")


def _with_blank_lines(
    text: str, newline: str, inserted: tuple[Edit, ...], removed: tuple[Edit, ...]
) -> tuple[Edit, ...]:
    """A statement that stood apart stands apart where it goes, and leaves as many blank lines as there were at most."""
    if len(inserted) != 1 or len(removed) != 1:
        return (*inserted, *removed)
    (here,), (there,) = inserted, removed
    above = _BLANK_LINES_ABOVE.search(text, 0, there.span.start)
    below = _BLANK_LINES_BELOW.match(text, there.span.end)
    if above is None:
        return (*inserted, *removed)
    span = Span(above.start(), there.span.end)
    if below is not None:
        fewer = above.group().count("\n") < below.group().count("\n")
        span = span if fewer else Span(there.span.start, below.end())
    indent = here.text.rpartition("\n")[2]
    apart = here.text.removesuffix(indent) + newline + indent
    return Edit(here.span, apart), Edit(span, there.text)


def _record(source: ScriptSource, call: Call) -> Record:
    return source.reading.calls.records[id(call)]


def _in_file(source: ScriptSource, edits: tuple[Edit, ...]) -> Edits:
    return tuple(FileEdit(source.document.path, edit, source.document) for edit in edits)


def _between(block: cst.CSTNode, first: cst.CSTNode, last: cst.CSTNode) -> list[cst.CSTNode] | None:
    """The statements of a block from ``first`` up to, but without, ``last``; None where they stand the other way."""
    statements = list(getattr(block, "body", ()))
    positions = [index for index, node in enumerate(statements) if node is first or node is last]
    if len(positions) != 2 or statements[positions[0]] is not first:
        return None
    return statements[positions[0] : positions[1]]


def _names(node: cst.CSTNode) -> set[str]:
    """Every name that stands in a node, whatever it is there for: more than enough for "does it depend on"."""
    return {found.value for found in walk(node) if isinstance(found, cst.Name)}


def _bound(node: cst.CSTNode) -> Iterator[str]:
    """Names that a statement may bind or change: targets, definitions, imports, and receivers of calls."""
    for found in walk(node):
        match found:
            case cst.AssignTarget(target=target) | cst.AugAssign(target=target) | cst.AnnAssign(target=target):
                yield from _names(target)
            case cst.FunctionDef(name=name) | cst.ClassDef(name=name):
                yield name.value
            case cst.ImportAlias():
                yield from _names(found)
            case cst.Call(func=cst.Attribute(value=cst.Name(value=name))):
                yield name
            case cst.For(target=target):
                yield from _names(target)


def _code(document: PythonDocument, statement: cst.CSTNode) -> str | None:
    """The statement's lines without their indentation; None where that would change a string."""
    span = document.span(statement)
    text = document.slice(span)
    if '"""' in text or "'''" in text:
        return None
    line_start = span.start - document.position(span.start).column + 1
    return textwrap.dedent(document.text[line_start : span.end])
