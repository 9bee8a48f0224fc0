"""Parts of a model that a script freezes, or changes by helpers of its own: then not all of it is trained."""

from __future__ import annotations

import re

import libcst as cst

from lintfit.documents.python_walk import names_of
from lintfit.settings import UNKNOWN
from lintfit.sources.python import operators
from lintfit.sources.python.facts import is_trained
from lintfit.sources.python.reading import Reading
from lintfit.sources.python.values import Const, Record, Value

_ADAPTS = re.compile(r"(?:to|add|inject|apply|convert|insert)_?.*lora(?!\w*_to_)", re.IGNORECASE)
"""Names of helpers that put adapters of their own into a model."""

_BESIDE = re.compile(r"vis|vpm|vit|tower|audio|apm|tts|image|embed|proj|resampler|head", re.IGNORECASE)
"""Parts of a model beside its language model."""

_RETURN_IT = frozenset({"eval", "train", "to", "cuda", "half", "float", "bfloat16"})
"""Methods of a module that return the module."""


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
        if operators.truth(_first(record)) is not False:
            reading.settings.pop("frozen_modules", None)
            continue
        chain = _chain(record, names)
        if _of_language_model(reading, chain, names, record.receiver):
            reading.state("method", UNKNOWN, record.node, "a part of the model is frozen here")
        elif record.taken:
            _beside(reading, chain, names, record.node)
    for gradient in reading.gradients:
        chain = _chain(gradient.source, names)
        if gradient.taken is not False and _of_language_model(reading, chain, names, gradient.source.receiver):
            if gradient.value is not True:
                reading.state("method", UNKNOWN, gradient.node, "a part of the model is frozen here")
            elif gradient.taken:
                reading.derive("method", "full", "no adapter is applied")
        elif gradient.taken is not False and gradient.value is not False:
            reading.settings.pop("frozen_modules", None)
        elif gradient.taken:
            _beside(reading, chain, names, gradient.node)


def _chain(record: Record, names: set[str | None]) -> list[str]:
    """``a.b.c`` of what a method is called on: as it stands there, else as it was handed to the function around it."""
    function = record.node.func
    chain = names_of(function.value) if isinstance(function, cst.Attribute) else []
    handed = record.receiver.origin if record.receiver is not None else None
    if isinstance(handed, cst.Call) and isinstance(handed.func, cst.Attribute) and handed.func.attr.value in _RETURN_IT:
        handed = handed.func.value
    if (chain and chain[0] in names) or not isinstance(handed, cst.Attribute):
        return chain
    return names_of(handed)


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


def _first(record: Record) -> Value:
    return record.value(0, "requires_grad") or Const(None, True)
