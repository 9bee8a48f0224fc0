"""Writes ``del outputs`` into a loop that needs no more of the model's outputs than their loss."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.model import Span
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.own_outputs import Held, holders
from lintfit.sources.script.reading.own_pass import scope_of
from lintfit.sources.script.writing.file_edits import Edits, edits_in


def let_go(reading: Reading) -> Edits | None:
    """The edits that delete each name before the backward pass; None where one is needed behind it, or goes on under
    another."""
    document = reading.calls.script
    found = {(id(held.one.scope), held.name): held for held in holders(reading)}
    edits: list[Edits] = []
    for held in found.values():
        statement = _statement(document, held)
        if statement is None or not document.editable:
            return None
        edits.append(edits_in(document, python_edits.insert_statement_before(document, statement, f"del {held.name}")))
    return tuple(edit for each in edits for edit in each) or None


def _statement(document: PythonDocument, held: Held) -> cst.SimpleStatementLine | None:
    """The statement of the backward pass, if the name may be gone by then."""
    backward = loops.line_of(document, held.one.backward)
    forward = loops.line_of(document, held.forward)
    if backward is None or forward is None or not _reaches(document, forward, backward):
        return None
    start, end = document.span(forward), document.span(backward)
    for node in _uses(document, held):
        place = document.span(node).start
        inside = document.span(held.one.scope).start <= place < document.span(held.one.scope).end
        if inside and not start.start <= place < end.start:
            return None
        if not inside and not _own_use(document, node, held.name):
            return None
    return None if _goes_on(document, held, Span(start.end, end.start)) else backward


def _uses(document: PythonDocument, held: Held) -> Iterator[cst.Name]:
    """Every place of the name in the function, or the module, around the loop."""
    scopes = (held.one.scope, *loops.around(document, held.one.scope))
    around = next(each for each in scopes if isinstance(each, cst.FunctionDef | cst.Module))
    for node in walk(around):
        if isinstance(node, cst.Name) and node.value == held.name and not _labels(document, node):
            yield node


def _labels(document: PythonDocument, node: cst.Name) -> bool:
    """Whether a name only labels something: an attribute, or a keyword of a call."""
    parent = document.parent(node)
    return (isinstance(parent, cst.Attribute) and parent.attr is node) or (
        isinstance(parent, cst.Arg) and parent.keyword is node
    )


def _own_use(document: PythonDocument, node: cst.Name, name: str) -> bool:
    """Whether a use outside of the loop stands in another loop, which gives the name a value of its own first."""
    scope = scope_of(document, node)
    if scope is None:
        return False
    stores = [document.span(statement).start for each, _, statement in loops.assignments(scope.body) if each == name]
    return bool(stores) and min(stores) <= document.span(node).start


def _goes_on(document: PythonDocument, held: Held, between: Span) -> bool:
    """Whether another name takes over the logits, or all of the outputs."""
    for _, value, statement in loops.assignments(held.one.scope.body):
        if value is None or not between.start <= document.span(statement).start < between.end:
            continue
        text = loops.text(document, value).strip()
        if text == held.name or text.startswith((f"{held.name}.logits", f"{held.name}[1", f'{held.name}["logits')):
            return True
    return False


def _reaches(document: PythonDocument, forward: cst.CSTNode, backward: cst.CSTNode) -> bool:
    """Whether the block of the forward pass holds that of the backward pass, so that the name is there."""
    block = document.parent(forward)
    return any(each is block for each in loops.around(document, backward))
