"""Moves a statement of a script above an earlier one, where nothing between them is needed by it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.lines import line_start
from lintfit.documents.model import Edit, Span
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.sources.script.interpreter.values import Record
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.writing.file_edits import Edits, edits_in


def moved_above(document: PythonDocument, statement: Record, target: Record) -> Edits | None:
    """Move the statement of a call above that of an earlier one, or that one below it, whichever has fewer lines.

    None where the two do not stand in one block, or where one needs something that is bound between them.
    """
    below, above = statement.statement, target.statement
    if below is None or above is None or not document.editable:
        return None
    block = document.parent(below)
    if block is None or block is not document.parent(above):
        return None
    between = _between(block, above, below)
    if between is None:
        return None
    taken = _needed_right_above(below, between)
    fewer = _height(document, above) < _height(document, below)
    down = _moved_down(document, above, [*between[1:], below]) if fewer else None
    if down is not None:
        return down
    titled = _titled(document, block, above)
    left = between[: len(between) - len(taken)]
    whole = _moved_up(document, [*taken, below], titled[0], [*titled[:-1], *left]) if len(titled) > 1 else None
    return whole if whole is not None else _moved_up(document, [*taken, below], above, left)


def _needed_right_above(below: cst.CSTNode, between: list[cst.CSTNode]) -> list[cst.SimpleStatementLine]:
    """The assignments right above a statement that bind names of it, which go where it goes (``output_dir = "out"``);
    ``between`` begins with the statement that it goes above."""
    taken: list[cst.SimpleStatementLine] = []
    wanted = _names(below)
    for node in reversed(between[1:]):
        if not isinstance(node, cst.SimpleStatementLine) or not _gives_names(node) or wanted.isdisjoint(_bound(node)):
            break
        taken.insert(0, node)
        wanted |= _names(node)
    return taken


def _titled(
    document: PythonDocument, block: cst.CSTNode, statement: cst.SimpleStatementLine
) -> list[python_edits.Statement]:
    """The statements of a paragraph from the comment over it down to one; that one alone where there is none."""
    found: list[python_edits.Statement] = []
    statements = list(getattr(block, "body", ()))
    for node in reversed(statements[: statements.index(statement) + 1]):
        if found and _BLANK_LINE.search(document.text, document.span(node).end, _begin(document, found[0])):
            break
        found.insert(0, node)
        if _begin(document, node) < document.span(node).start:
            return found
    return [statement]


def _gives_names(node: cst.SimpleStatementLine) -> bool:
    """Whether a statement does nothing but give values to plain names."""
    targets = [target.target for each in node.body if isinstance(each, cst.Assign) for target in each.targets]
    return len(targets) >= len(node.body) and all(isinstance(target, cst.Name) for target in targets)


def _moved_up(
    document: PythonDocument,
    moved: list[cst.SimpleStatementLine],
    above: python_edits.Statement,
    between: list[cst.CSTNode],
) -> Edits | None:
    """Statements that follow one another above an earlier one, of which none needs what is bound between them."""
    bound = {name for node in between for name in _bound(node)}
    used = {name for node in between for name in _names(node)}
    given = {name for node in moved[:-1] for name in _bound(node)}
    if not used.isdisjoint(given) or not all(_names(node).isdisjoint(bound) for node in moved):
        return None
    code = _code(document, moved)
    if code is None:
        return None
    inserted = python_edits.insert_statement_before(document, above, code)
    first, last = moved[0], moved[-1]
    removed = _with_comments(document, first, python_edits.remove_statement(document, last))
    return edits_in(document, _with_blank_lines(document.text, document.file.newline, inserted, removed))


def _moved_down(document: PythonDocument, above: cst.SimpleStatementLine, passed: list[cst.CSTNode]) -> Edits | None:
    """A statement behind the last of those that follow it, of which none needs or changes what it has."""
    used = {name for node in passed for name in _names(node)}
    changed = {name for node in passed for name in _bound(node)}
    code, last = _code(document, [above]), passed[-1]
    if code is None or not used.isdisjoint(_bound(above)) or not changed.isdisjoint(_names(above)):
        return None
    assert isinstance(last, cst.SimpleStatementLine)
    removed = _with_comments(document, above, python_edits.remove_statement(document, above))
    inserted = python_edits.insert_statement_after(document, last, code)
    return edits_in(document, (*inserted, *_without_blank_lines(document.text, removed)))


def _with_comments(document: PythonDocument, statement: cst.CSTNode, removed: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edit that takes a statement out, with the comments right above it, which go where it goes."""
    first = line_start(document.text, _begin(document, statement))
    if len(removed) != 1 or first >= removed[0].span.start:
        return removed
    return (Edit(Span(first, removed[0].span.end), removed[0].text),)


def _begin(document: PythonDocument, statement: cst.CSTNode) -> int:
    """Where a statement begins, with the comments right above it."""
    return python_edits.above_comments(document, document.span(statement).start)


def _height(document: PythonDocument, statement: cst.CSTNode) -> int:
    """The lines of a statement."""
    return document.slice(document.span(statement)).count("\n") + 1


def _without_blank_lines(text: str, removed: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edit with the blank lines below a statement, where as many or more stand above it."""
    if len(removed) != 1:
        return removed
    (there,) = removed
    above = _BLANK_LINES_ABOVE.search(text, 0, there.span.start)
    below = _BLANK_LINES_BELOW.match(text, there.span.end)
    if above is None or below is None:
        return removed
    if above.group().count("\n") < below.group().count("\n"):
        return (Edit(Span(above.start(), there.span.end), there.text),)
    return (Edit(Span(there.span.start, below.end()), there.text),)


def configured_first(reading: Reading) -> Edits | None:
    """Move what tells transformers of ZeRO-3 above the load of the model; None where it cannot be moved there."""
    found = reading.found
    made = found.arguments.call if found.arguments is not None else None
    makers = [record for record in (made, found.accelerator) if record is not None]
    maker = min(makers, key=lambda record: record.order, default=None)
    if maker is None or found.trained_load is None:
        return None
    return moved_above(reading.calls.script, maker, found.trained_load)


_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n")
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


def _code(document: PythonDocument, moved: list[cst.SimpleStatementLine]) -> str | None:
    """The lines of statements that follow one another, with the comments above the first, without indentation; None
    where that would change a string."""
    start, end = _begin(document, moved[0]), document.span(moved[-1]).end
    text = document.text[start:end]
    if '"""' in text or "'''" in text:
        return None
    return textwrap.dedent(document.text[line_start(document.text, start) : end])
