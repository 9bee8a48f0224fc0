"""Parts of a model that a script freezes, or changes by helpers of its own: then not all of it is trained."""

from __future__ import annotations

import re
from itertools import dropwhile
from operator import itemgetter
from typing import NamedTuple

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import names_of
from lintfit.settings import UNKNOWN
from lintfit.sources.python.facts import is_trained
from lintfit.sources.python.frozen_names import EVERY, Switch, switches
from lintfit.sources.python.operators import switched
from lintfit.sources.python.reading import Reading
from lintfit.sources.python.switched_on import switched_on
from lintfit.sources.python.values import Record, Value

_ADAPTS = re.compile(r"(?:to|add|inject|apply|convert|insert)_?.*lora(?!\w*_to_)", re.IGNORECASE)
"""Names of helpers that put adapters of their own into a model."""

_BESIDE = re.compile(r"vis|vpm|vit|tower|audio|apm|tts|image|embed|proj|resampler|head", re.IGNORECASE)
"""Parts of a model beside its language model."""

_OWN = re.compile(r"torch\.nn\.(?!functional\b|parallel\b|utils\b)")
"""Layers and parameters that a script makes itself."""

_GOES_THROUGH = frozenset({"enumerate", "list", "reversed", "zip"})

_GIVE_IT = frozenset(
    {
        "bfloat16",
        "children",
        "cuda",
        "eval",
        "float",
        "half",
        "modules",
        "named_children",
        "named_modules",
        "to",
        "train",
    }
)
"""Methods of a module that give the module, or its parts."""


def read(reading: Reading) -> None:
    """``requires_grad`` of the model and its parts, in the order in which it is switched: what of it is not trained.

    Where that cannot be told of the language model, nobody knows what is trained; parts beside it are then trained.
    """
    load = reading.found.trained_load
    loads = [load] if load is not None else [r for r in reading.found.loads if r.taken is not False]
    names = {reading.found.trained_name, *(record.assigned_to for record in loads)}
    for record in reading.records:
        if record.taken is not False and _ADAPTS.search(record.name):
            reading.state("method", UNKNOWN, record.node, "adapters of the script's own are put in here")
            return
    patterns: list[str] = []
    first: cst.CSTNode | None = None
    for event in _events(reading, names):
        added = _added(patterns, event)
        if added is None and event.of_text:
            _partly(reading, event.node)
            return
        patterns += added or ()
        while "!*" in patterns:
            patterns, first = patterns[patterns.index("!*") + 1 :], None
        if patterns:
            first = first or event.node
            if event.of_text:
                reading.state("partly_frozen", True, event.node, _FROZEN)
    if first is None:
        return
    if "partly_frozen" in reading.settings and not _all_seen(reading):
        _partly(reading, first)
    else:
        _state(reading, tuple(patterns), first)


def _all_seen(reading: Reading) -> bool:
    """Whether all that the script's files switch on is known to be of the trained model, of another one, or not run."""
    names = {reading.found.trained_name, *(record.assigned_to for record in reading.found.loads)}
    switched_at: list[tuple[cst.CSTNode, Record, bool | None]] = [
        *((record.node, record, record.taken) for record in reading.records if record.name == "requires_grad_"),
        *((gradient.node, gradient.source, gradient.taken) for gradient in reading.gradients),
    ]
    seen = []
    for node, record, taken in switched_at:
        chain, index = _chain(reading.calls.script, record, names)
        known = bool(chain) and chain[0] in names and index != UNTOLD
        if taken is False or known or is_trained(reading.found, record.receiver):
            seen.append(reading.calls.place(node))
    return all(
        any(place.document is document and place.span.start <= offset < place.span.end for place in seen)
        for document, offset in switched_on(reading.calls)
    )


class _Event(NamedTuple):
    """One statement that switches gradients of a part of the model, by the part's name; ``told``: None where what it
    does cannot be told."""

    node: cst.CSTNode
    of_text: bool
    path: str
    told: tuple[Switch, ...] | None


_FROZEN = "a part of the model is frozen here"


def _state(reading: Reading, patterns: tuple[str, ...], node: cst.CSTNode) -> None:
    """Put down what is frozen; layers of the script's own are trained beside it, and nobody knows which these are."""
    if "partly_frozen" in reading.settings and any(_OWN.match(record.function) for record in reading.records):
        del reading.settings["partly_frozen"]
        _partly(reading, node)
    else:
        reading.state("frozen_modules", patterns, node, "is frozen here")


def _events(reading: Reading, names: set[str | None]) -> list[_Event]:
    """All of them in their order; of one loop those first that mean all names but some."""
    found: list[tuple[int, bool, _Event]] = []
    for record in reading.records:
        if record.name == "requires_grad_" and record.taken is not False:
            on = switched(record) is not False
            sure = record.taken is True and switched(record) is not None
            event = _event(reading, record, record.node, names, (Switch(EVERY, on),) if sure or on else None)
            found += [(record.order, False, event)] if event is not None else []
    for gradient in reading.gradients:
        if gradient.taken is not False:
            told = switches(reading.calls.script, gradient)
            event = _event(reading, gradient.source, gradient.node, names, told)
            others = told is None or told[0].picked.others
            found += [(gradient.source.order, not others, event)] if event is not None else []
    return [event for _, _, event in sorted(found, key=itemgetter(0, 1))]


def _event(
    reading: Reading, record: Record, node: cst.CSTNode, names: set[str | None], told: tuple[Switch, ...] | None
) -> _Event | None:
    """What a statement does to the model; None where it is about another, or does nothing that is sure to parts beside
    the language model. ``told``: what it does to the module that ``record`` is called on."""
    chain, index = _chain(reading.calls.script, record, names)
    of_text = _of_language_model(reading, chain, names, record.receiver)
    by_another_name = len(chain) == 1 and is_trained(reading.found, record.receiver)
    mine = bool(chain) and (chain[0] in names or by_another_name)
    if not of_text and not mine:
        return None
    sure = mine and index != UNTOLD
    return _Event(node, of_text, _path(chain[1:], of_text) + index, told if sure else None)


def _added(before: list[str], event: _Event) -> list[str] | None:
    """What a statement adds to the patterns of ``frozen_modules``; None where that cannot be told."""
    if event.told is None or (event.path.endswith("]") and any(switch.picked != EVERY for switch in event.told)):
        return None
    found: list[str] = []
    for switch in event.told:
        marked = "" if switch.on is False else "!"
        named = [f"{event.path}.{name}" if event.path else name for name in switch.picked.names]
        if switch.picked.others:  # those of these names stay what they are
            if before not in ([], ["*"]):
                return None
            found.append(f"{marked}{event.path or '*'}")
            marked = "" if before else "!"
        found += [f"{marked}{name}" for name in ([event.path] if event.path and switch.picked == EVERY else named)]
    return found if before or any(not each.startswith("!") for each in found) else []


def _path(chain: list[str], of_text: bool) -> str:
    """A part of the model by the name that it has there, without what wraps the model."""
    wrappers = ("module", "base_model") if of_text else ("model", "module", "base_model")
    return ".".join(dropwhile(wrappers.__contains__, chain))


def _partly(reading: Reading, node: cst.CSTNode) -> None:
    """Not all of the language model is trained: no more than all of it where the script adds no layers of its own."""
    reading.state("method", UNKNOWN, node, _FROZEN)
    if reading.found.trained_load is not None and not any(_OWN.match(record.function) for record in reading.records):
        reading.state("partly_frozen", True, node, _FROZEN)


UNTOLD = "[?]"
"""An index that only running the script would tell."""


def _chain(document: PythonDocument, record: Record, names: set[str | None]) -> tuple[list[str], str]:
    """``a.b.c`` of what a method is called on, as it stands there, else what a loop around goes through, or as it was
    handed to the function around; and which layers of it."""
    function = record.node.func
    chain, index = _names(function.value) if isinstance(function, cst.Attribute) else ([], "")
    if chain and chain[0] in names:
        return chain, index
    if chain and (through := _looped(document, record.node, chain[0])) is not None:
        holder, layers = _names(through.iter)
        return [*holder, *chain[1:]], UNTOLD if index or (layers and chain[1:]) else layers
    handed = record.receiver.origin if record.receiver is not None else None
    found = _names(handed) if isinstance(handed, cst.Attribute | cst.Subscript | cst.Call) else ([], "")
    return found if found[0] else (chain, index)


def _looped(document: PythonDocument, node: cst.CSTNode, name: str) -> cst.For | None:
    """The loop around a node in the same function whose variable has this name."""
    current = document.parent(node)
    while current is not None and not isinstance(current, cst.FunctionDef):
        if isinstance(current, cst.For):
            target = current.target
            bound = [each.value for each in target.elements] if isinstance(target, cst.Tuple) else [target]
            if any(isinstance(each, cst.Name) and each.value == name for each in bound):
                return current
        current = document.parent(current)
    return None


def _names(node: cst.CSTNode) -> tuple[list[str], str]:
    """``a.b.c``, also of ``a.b[0]``, of what gives it, and of what a loop goes through (``enumerate(a.b)``); and the
    index behind it."""
    match node:
        case cst.Subscript():
            holder, index = _names(node.value)
            return holder, UNTOLD if index else _index(node)
        case cst.Attribute():
            holder, index = _names(node.value)
            return ([*holder, node.attr.value] if holder else []), UNTOLD if index else ""
        case cst.Call(func=cst.Name(value=name), args=[first, *_]) if name in _GOES_THROUGH:
            return _names(first.value)
        case cst.Call(func=cst.Attribute() as func) if func.attr.value in _GIVE_IT:
            return _names(func.value)
    return names_of(node), ""


def _index(node: cst.Subscript) -> str:
    """``[:24]`` or ``[-1]``, where numbers are written there."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=value))] if (number := _number(value)) is not None:
            return f"[{number}]"
        case [cst.SubscriptElement(slice=cst.Slice(lower=lower, upper=upper, step=None))]:
            ends = [("" if end is None else _number(end)) for end in (lower, upper)]
            return UNTOLD if None in ends else f"[{ends[0]}:{ends[1]}]"
    return UNTOLD


def _number(node: cst.BaseExpression) -> str | None:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = _number(node.expression)
        return None if inner is None else f"-{inner}"
    return node.value if isinstance(node, cst.Integer) and node.value.isdecimal() else None


def _of_language_model(reading: Reading, chain: list[str], names: set[str | None], receiver: Value | None) -> bool:
    """Whether ``a.b.c`` is the trained model or a part of its language model."""
    if any(_BESIDE.search(part) for part in chain[1:]):
        return False
    return (bool(chain) and chain[0] in names) or is_trained(reading.found, receiver)
