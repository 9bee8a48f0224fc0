"""Forward and backward pass in a training loop of the script's own: where they stand, and which call is the model's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.sources.python import loops
from lintfit.sources.python.evaluations import FORWARD
from lintfit.sources.python.reading import Reading

_MODEL = re.compile(r"(^|_)(model|engine|policy|actor|net|lm|llm)(_|\d*$)", re.IGNORECASE)

Scope = cst.For | cst.While | cst.FunctionDef


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """A call of ``backward`` that the run comes by, in the innermost loop or function around it.

    ``trained``: the last part of the trained model's name; ``came_by``: the calls that the run comes by.
    """

    document: PythonDocument
    scope: Scope
    backward: cst.Call
    trained: str
    came_by: frozenset[int]

    @property
    def at(self) -> int:
        """Where the backward pass stands."""
        return self.start(self.backward)

    def start(self, node: cst.CSTNode) -> int:
        return self.document.span(node).start

    def is_forward(self, call: cst.Call) -> bool:
        """Whether a call is one of the model, with gradients."""
        name = last(FORWARD.sub("", loops.name_of(call.func) or ""))
        known = bool(name) and (name == self.trained or _MODEL.search(name) is not None)
        return known and self.runs(call) and not loops.without_gradients(self.document, call)

    def runs(self, call: cst.Call) -> bool:
        return id(call) in self.came_by

    def calls(self) -> Iterator[cst.Call]:
        """The calls of the loop or function that the run comes by, in the order of the text."""
        for node in loops.inside(self.scope.body):
            if isinstance(node, cst.Call) and self.runs(node):
                yield node


def own(reading: Reading) -> bool:
    """Whether a loop of the script's own trains."""
    found = reading.found
    library = found.trainer is not None or found.first_ppo is not None
    return found.trains and not library and reading.calls.script.module is not None


def passes(reading: Reading) -> Iterator[Pass]:
    """The backward passes of the script, in the order of the text."""
    document = reading.calls.script
    if document.module is None or "backward(" not in document.text:
        return
    came_by = frozenset(id(record.node) for record in reading.records if record.taken is not False)
    trained = last(reading.found.trained_name)
    for node in walk(document.module):
        if isinstance(node, cst.Call) and id(node) in came_by and last(loops.name_of(node.func)) == "backward":
            scope = _scope(document, node)
            if scope is not None:
                yield Pass(document, scope, node, trained, came_by)


def _scope(document: PythonDocument, node: cst.CSTNode) -> Scope | None:
    current = document.parent(node)
    while current is not None and not isinstance(current, cst.For | cst.While | cst.FunctionDef):
        current = document.parent(current)
    return current


def last(name: str | None) -> str:
    """The last part of a dotted name."""
    return (name or "").rpartition(".")[2]
