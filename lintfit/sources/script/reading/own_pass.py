"""Forward and backward pass in a training loop of the script's own: where they stand, and which call is the model's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.frozen import frozen
from lintfit.sources.script.interpreter.values import Record
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.evaluation_loops import FORWARD

_MODEL = re.compile(r"(^|_)(model|engine|policy|actor|net|lm|llm)(_|\d*$)", re.IGNORECASE)

Scope = cst.For | cst.While | cst.FunctionDef


@frozen(eq=False)
class Pass:
    """A call of ``backward`` that the run comes by, in the innermost loop or function around it.

    ``trained``: the last part of the trained model's name; ``records``: the calls that the run comes by, by node.
    """

    document: PythonDocument
    scope: Scope
    backward: cst.Call
    trained: str
    records: Mapping[int, Record]

    @property
    def at(self) -> int:
        """Where the backward pass stands."""
        return self.start(self.backward)

    def start(self, node: cst.CSTNode) -> int:
        return self.document.span(node).start

    def is_forward(self, call: cst.Call) -> bool:
        """Whether a call is one of the model, with gradients."""
        name = _last(FORWARD.sub("", loops.name_of(call.func) or ""))
        known = bool(name) and (name == self.trained or _MODEL.search(name) is not None)
        return known and id(call) in self.records and not loops.without_gradients(self.document, call)

    def calls(self) -> Iterator[Record]:
        """The calls of the loop or function that the run comes by, in the order of the text."""
        for node in loops.inside(self.scope.body):
            if id(node) in self.records:
                yield self.records[id(node)]


def own(reading: Reading) -> bool:
    """Whether a loop of the script's own trains."""
    found = reading.found
    return found.trains and found.trainer is None and found.first_ppo is None


def passes(reading: Reading) -> Iterator[Pass]:
    """The backward passes of the script itself, in the order of the text."""
    document = reading.calls.script
    records = {id(record.node): record for record in reading.records if record.taken is not False}
    backward = [
        record.node
        for record in records.values()
        if record.name == "backward" and reading.calls.document_of(record.node) is document
    ]
    if len(backward) > 1:  # places take long to find
        backward.sort(key=lambda call: document.span(call).start)
    for node in backward:
        scope = scope_of(document, node)
        if scope is not None:
            yield Pass(document, scope, node, _last(reading.found.trained_name), records)


def scope_of(document: PythonDocument, node: cst.CSTNode) -> Scope | None:
    """The innermost loop or function around a node; None in the module itself."""
    return next((each for each in loops.around(document, node) if isinstance(each, Scope)), None)


def _last(name: str | None) -> str:
    return (name or "").rpartition(".")[2]
