"""Parts of a model that a script freezes, or changes by helpers of its own: then not all of it is trained."""

from __future__ import annotations

import re

import libcst as cst

from lintfit.documents.python_walk import names_of
from lintfit.settings import UNKNOWN
from lintfit.sources.python.facts import is_trained
from lintfit.sources.python.operators import switched
from lintfit.sources.python.reading import Reading
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
    """``model.requires_grad_(False)`` or the same on a part of the language model: then not all of it is trained."""
    load = reading.found.trained_load
    loads = [load] if load is not None else [r for r in reading.found.loads if r.taken is not False]
    names = {reading.found.trained_name, *(record.assigned_to for record in loads)}
    for record in reading.records:
        if record.taken is not False and _ADAPTS.search(record.name):
            reading.state("method", UNKNOWN, record.node, "adapters of the script's own are put in here")
            return
        if record.name != "requires_grad_" or record.taken is False:
            continue
        if switched(record) is not False:
            reading.settings.pop("frozen_modules", None)
            continue
        chain = _chain(record, names)
        if _of_language_model(reading, chain, names, record.receiver):
            _partly(reading, record.node)
        elif record.taken:
            _beside(reading, chain, names, record.node)
    for gradient in reading.gradients:
        chain = _chain(gradient.source, names)
        if gradient.taken is not False and _of_language_model(reading, chain, names, gradient.source.receiver):
            if gradient.value is not True:
                _partly(reading, gradient.node)
            elif gradient.taken:
                reading.derive("method", "full", "no adapter is applied")
        elif gradient.taken is not False and gradient.value is not False:
            reading.settings.pop("frozen_modules", None)
        elif gradient.taken:
            _beside(reading, chain, names, gradient.node)


def _partly(reading: Reading, node: cst.CSTNode) -> None:
    """Not all of the language model is trained: no more than all of it where the script adds no layers of its own."""
    reading.state("method", UNKNOWN, node, "a part of the model is frozen here")
    if reading.found.trained_load is not None and not any(_OWN.match(record.function) for record in reading.records):
        reading.state("partly_frozen", True, node)


def _chain(record: Record, names: set[str | None]) -> list[str]:
    """``a.b.c`` of what a method is called on: as it stands there, else as it was handed to the function around it."""
    function = record.node.func
    chain = _names(function.value) if isinstance(function, cst.Attribute) else []
    handed = record.receiver.origin if record.receiver is not None else None
    if (chain and chain[0] in names) or not isinstance(handed, cst.Attribute | cst.Subscript | cst.Call):
        return chain
    return _names(handed)


def _names(node: cst.CSTNode) -> list[str]:
    """``a.b.c``, also of ``a.b[0].c``, of what gives it, and of what a loop goes through (``enumerate(a.b)``)."""
    match node:
        case cst.Subscript():
            return _names(node.value)
        case cst.Attribute():
            holder = _names(node.value)
            return [*holder, node.attr.value] if holder else []
        case cst.Call(func=cst.Name(value=name), args=[first, *_]) if name in _GOES_THROUGH:
            return _names(first.value)
        case cst.Call(func=cst.Attribute() as func) if func.attr.value in _GIVE_IT:
            return _names(func.value)
    return names_of(node)


def _beside(reading: Reading, chain: list[str], names: set[str | None], node: cst.CSTNode) -> None:
    """A part of the model beside its language model that is frozen: ``model.vision_tower``, ``model.visual.merger``."""
    if not chain or chain[0] not in names:
        return
    path = chain[1:]
    while path and path[0] in ("model", "module", "base_model"):
        path = path[1:]
    if path:
        before = reading.settings.get("frozen_modules")
        found = before.value if before is not None else ()
        reading.state("frozen_modules", (*found, ".".join(path)), node, "is frozen here")


def _of_language_model(reading: Reading, chain: list[str], names: set[str | None], receiver: Value | None) -> bool:
    """Whether ``a.b.c`` is the trained model or a part of its language model."""
    if any(_BESIDE.search(part) for part in chain[1:]):
        return False
    return (bool(chain) and chain[0] in names) or is_trained(reading.found, receiver)
