"""What a training loop of the script's own does with the model's outputs: whether a name holds them, and how long.

``outputs = model(**batch)`` holds logits and cache through the backward pass and, in the loop's own body, until the
next batch has outputs; ``loss = model(**batch).loss`` holds neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.sources.python import loops
from lintfit.sources.python.evaluations import FORWARD
from lintfit.sources.python.reading import Reading

_MODEL = re.compile(r"(^|_)(model|engine|policy|actor|net|lm|llm)(_|\d*$)", re.IGNORECASE)
_CACHE = re.compile(r"\buse_cache\b")


class Held(NamedTuple):
    """The call of the model, the name that holds what it gives, how long, and whether that is all of it; the loop or
    function, and the backward pass in it."""

    forward: cst.Call
    name: str
    until: str
    whole: bool
    scope: cst.For | cst.While | cst.FunctionDef
    backward: cst.Call


def read(reading: Reading) -> None:
    """Note what the loop holds. The cache is on by the model's config, where nobody says anything of it."""
    found = reading.found
    if not found.trains or found.trainer is not None or found.first_ppo is not None:
        return
    document = reading.calls.script
    if document.module is None or "backward(" not in document.text:
        return
    # DeepSpeed's engine and torch.autocast hand on what they have made.
    copied = found.accelerator is not None or any(record.name == "Fabric" for record in reading.records)
    reading.derive("upcast_outputs", copied, "Accelerate and Fabric copy outputs to fp32")
    held = next(holders(reading, document), None)
    if held is None:
        reading.derive("loop_outputs", "dropped", "no name holds what the model gives")
    else:
        reading.state("loop_outputs", held.until, held.forward, f"{held.name} holds what the model gives")
    if "use_cache" in reading.settings:
        return
    if _CACHE.search(document.text):
        reading.derive("use_cache", False, "the script says something of it")
    elif held is not None and not held.whole:
        reading.derive("use_cache", False, "only the logits have a name")


def holders(reading: Reading, document: PythonDocument) -> Iterator[Held]:
    """The names that hold the outputs whose loss runs backward, in the order of the text."""
    assert document.module is not None
    came_by = {id(record.node) for record in reading.records if record.taken is not False}
    for node in walk(document.module):
        if isinstance(node, cst.Call) and id(node) in came_by and _last(loops.name_of(node.func)) == "backward":
            scope = _scope(document, node)
            if scope is not None:
                found = _Scope(reading, document, scope, node, came_by).holder()
                if found is not None:
                    yield found


def _scope(document: PythonDocument, node: cst.CSTNode) -> cst.For | cst.While | cst.FunctionDef | None:
    """The innermost loop or function around a node."""
    current = document.parent(node)
    while current is not None and not isinstance(current, cst.For | cst.While | cst.FunctionDef):
        current = document.parent(current)
    return current


class _Scope:
    """The loop or function in which a backward pass runs."""

    def __init__(
        self,
        reading: Reading,
        document: PythonDocument,
        scope: cst.For | cst.While | cst.FunctionDef,
        backward: cst.Call,
        came_by: set[int],
    ) -> None:
        self.document = document
        self.scope = scope
        self.backward = backward
        self.came_by = came_by
        self.trained = _last(reading.found.trained_name)
        self.at = document.span(backward).start
        self.bound = list(loops.assignments(scope.body))
        self.seen: set[tuple[str, int]] = set()
        """Names that have been followed, with where they were given what they hold."""

    def holder(self) -> Held | None:
        """The name that holds what the loss was made of; None where nothing but the loss is held."""
        sources: list[cst.BaseExpression] = [argument.value for argument in self.backward.args[:1]]
        if isinstance(self.backward.func, cst.Attribute):
            sources.append(self.backward.func.value)
        for source in sources:
            for name in _names(source):
                found = self._follow(name, self.at)
                if found is not None:
                    return found
        return None

    def _follow(self, name: str, before: int) -> Held | None:
        """What a name holds at a place of the text, or what that was made of."""
        given = [(self._start(node), value) for each, value, node in self.bound if each == name]
        start, value = max((one for one in given if one[0] < before), key=lambda one: one[0], default=(0, None))
        if value is None or (name, start) in self.seen:
            return None
        self.seen.add((name, start))
        whole = value
        logits = isinstance(value, cst.Attribute) and value.attr.value == "logits"
        if isinstance(value, cst.Attribute) and logits:
            whole = value.value
        if isinstance(whole, cst.Call) and self._is_forward(whole):
            until = self._until(name, whole)
            return None if until is None else Held(whole, name, until, not logits, self.scope, self.backward)
        for each in _names(value):
            found = self._follow(each, start)
            if found is not None:
                return found
        return None

    def _is_forward(self, call: cst.Call) -> bool:
        last = _last(FORWARD.sub("", loops.name_of(call.func) or ""))
        known = bool(last) and (last == self.trained or _MODEL.search(last) is not None)
        return known and id(call) in self.came_by and not loops.without_gradients(self.document, call)

    def _until(self, name: str, forward: cst.Call) -> str | None:
        """How long a name holds what it was given; None where it is let go of before the backward pass."""
        gone = [self._start(node) for node in loops.inside(self.scope.body) if _deletes(node, name)]
        gone += [self._start(node) for each, _, node in self.bound if each == name]
        if any(self._start(forward) < place < self.at for place in gone):
            return None
        lets_go = any(place > self.at for place in gone)
        return "backward" if lets_go or isinstance(self.scope, cst.FunctionDef) else "held"

    def _start(self, node: cst.CSTNode) -> int:
        return self.document.span(node).start


def _names(expression: cst.BaseExpression) -> Iterator[str]:
    for node in (expression, *loops.inside(expression)):
        if isinstance(node, cst.Name):
            yield node.value


def _deletes(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Del) and any(
        isinstance(part, cst.Name) and part.value == name for part in (node.target, *loops.inside(node.target))
    )


def _last(name: str | None) -> str:
    return (name or "").rpartition(".")[2]
