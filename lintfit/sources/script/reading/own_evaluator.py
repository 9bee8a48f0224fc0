"""A Trainer's class of the script that evaluates by code of its own: what that holds nobody has counted.

``Trainer.evaluate`` calls ``evaluation_loop``, and that ``prediction_step``, which runs the model once for the loss
(transformers ``trainer.py``). What is counted is that pass. A method that overrides one of the three and has a way on
which it neither asks its base class nor runs the model makes other things of a batch, such as answers alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.sources.script.interpreter.expressions import dotted, is_super
from lintfit.sources.script.interpreter.values import Record
from lintfit.sources.script.reading.own_method import Lineage, lineage, method_of
from lintfit.sources.script.reading.ways import fewest

_METHODS = ("evaluate", "evaluation_loop", "prediction_step")
_ASKS = frozenset({*_METHODS, "prediction_loop", "predict", "compute_loss"})
"""Methods of the Trainer that run the model on a batch for its loss."""
_MODEL = re.compile(r"^((self\.)?(\w+_)?model(_wrapped)?(\.forward)?|self\.forward)$")
"""How scripts call the model itself."""
_DEPTH = 4
"""Methods of the class that are followed into one another: TRL's ``prediction_step`` has three up to the model."""


def by_itself(documents: Sequence[PythonDocument], trainer: Record) -> tuple[str, cst.Name] | None:
    """The method of a trainer's own class that evaluates in a way of its own, as people call it, and its name."""
    for name in [cls.name for cls in trainer.classes] or [dotted(trainer.node.func).rpartition(".")[2]]:
        line = lineage(documents, name)
        for wanted in _METHODS:
            owner = next((cls for _, cls in line if method_of(cls, wanted) is not None), None)
            method = method_of(owner, wanted) if owner is not None else None
            if owner is not None and method is not None and not _passes(line, method, 0):
                return f"{owner.name.value}.{wanted}", method.name
    return None


def _passes(line: Lineage, method: cst.FunctionDef, depth: int) -> int:
    """How often a method runs the model for its loss, or has its base class do so, on the way that does least of it."""
    return fewest(method.body, lambda call: _count(line, method, call, depth))


def _count(line: Lineage, method: cst.FunctionDef, call: cst.Call, depth: int) -> int:
    function, name = call.func, dotted(call.func)
    last = name.rpartition(".")[2]
    if isinstance(function, cst.Attribute) and is_super(function.value):
        return 1
    if last in _ASKS and _is_of_trainer(name):
        return 1
    if _MODEL.match(name) is not None:
        return 1
    if not name.startswith("self.") or depth >= _DEPTH:
        return 0
    own = next((found for _, cls in line if (found := method_of(cls, last)) is not None), None)
    return _passes(line, own, depth + 1) if own is not None and own is not method else 0


def _is_of_trainer(name: str) -> bool:
    """Whether a method is called of the trainer itself, or of a class of trainers (``Trainer.evaluate(self)``)."""
    owner = name.rpartition(".")[0]
    return owner == "self" or owner.endswith("Trainer")
