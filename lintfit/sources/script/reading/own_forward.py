"""What a forward pass of the project's own runs of the model: once, as is counted, or in a way that nobody has counted.

A module of the project may hold the model as a part (a wrapper with heads of its own), or inherit from a library's
class and write ``forward`` anew. Where that makes one pass with gradients, as the library's does, the memory is that of
the library's. Of several passes one is a lower bound; of what a loop runs, or a pass without gradients, nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import libcst as cst

from lintfit.documents.python_walk import walk
from lintfit.settings.model import UNKNOWN
from lintfit.settings.uncounted import PASSES
from lintfit.sources.script.interpreter import models
from lintfit.sources.script.interpreter.expressions import dotted, is_super
from lintfit.sources.script.interpreter.values import Class, Function, Object, objects
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.ways import most

_DEPTH = 3
"""Methods of a class that are followed into one another."""
_PARTS = frozenset({
    "backbone", "base_model", "bert", "decoder", "gpt_neox", "language_model", "llama_model", "llm", "lm", "model",
    "roberta", "text_model", "transformer",
})  # fmt: skip
"""Names by which classes keep what their layers are in."""
_PLAIN = frozenset({"accelerate", "deepspeed", "lightning", "pytorch_lightning", "torch", "transformers"})
"""Packages whose classes freeze nothing by themselves."""
_OF_LOGITS = re.compile(r"cross_entropy$|CrossEntropyLoss$|loss_f\w*$|^criterion$")
"""Losses of logits as transformers' own classes call them: ``loss_fct``, ``self.loss_function``, …"""
_MANY = 1000
"""Passes of a loop: nobody knows how many, nor of which part of a batch."""
_LOOPS = (cst.For, cst.While, cst.ListComp, cst.GeneratorExp)


def read(reading: Reading) -> None:
    """Note a forward pass of the project's own that is not the one that is counted."""
    made = next((each for each in objects(reading.found.trained) if each.cls is not None), None)
    if made is None or made.cls is None:
        return
    wraps = models.in_own_module(made)
    forward = made.cls.member("forward")
    if isinstance(forward, Function) and isinstance(forward.node, cst.FunctionDef):
        _fuses_loss(reading, made.cls, forward.node)
        name, runs = forward.node.name, _runs(reading, made, forward.node)
    elif wraps and made.cls.node is not None:
        name, runs = made.cls.node.name, 0  # it has none: what trains it calls its parts
    else:
        return
    what = f"{made.cls.name}.forward"
    if wraps and reading.found.peft is None:
        _who_freezes(reading, made.cls, name)
    if runs == 1 and (wraps or _has_own_loss(made.cls.member("forward"))):
        reading.state("own_head", True, name, f"{made.cls.name} decides what becomes of the model's outputs")
    elif 1 < runs < _MANY and "uncounted" not in reading.settings:
        reading.state("uncounted", PASSES.format(runs, what), name)
    elif runs != 1:
        part = "the model in a loop" if runs else "a part of the model, or calls it out of sight"
        reading.state("forward_pass", True, name, f"{what} runs {part}, which is not counted")


_FUSED = re.compile(r"(?:^|_)linear_cross_entropy$|FusedLinearCrossEntropy(?:Loss|Function)?$")
"""Losses that are computed together with the output layer: Cut Cross Entropy's, and Liger's."""


def _fuses_loss(reading: Reading, cls: Class, forward: cst.FunctionDef) -> None:
    """Note a loss for which nobody makes whole logits; where some are made beside it, for whatever, nobody knows."""
    calls = [node for node in walk(forward) if isinstance(node, cst.Call)]
    held = frozenset(_held_losses(cls))
    fused = next((call for call in calls if _is_fused(call) or dotted(call.func) in held), None)
    if fused is None:
        return
    makes = any(dotted(call.func) == "self.lm_head" or _is_the_library_s(call) for call in calls)
    reading.state("loss", UNKNOWN if makes else "liger", fused, f"{cls.name}.forward computes the loss with the head")


def _held_losses(cls: Class) -> Iterator[str]:
    """The parts of a class that are such a loss, as its methods call them (``self.loss``)."""
    made = cls.member("__init__")
    if not isinstance(made, Function) or made.node is None:
        return
    for node in walk(made.node):
        if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call) and _is_fused(node.value):
            yield from (dotted(each.target) for each in node.targets)


def _is_fused(call: cst.Call) -> bool:
    return bool(_FUSED.search(dotted(call.func).removesuffix(".apply")))


def _has_own_loss(forward: object) -> bool:
    """Whether a function makes a loss, and not of logits as transformers' own does."""
    if not isinstance(forward, Function) or forward.node is None:
        return False
    made = [node.value for node in walk(forward.node) if isinstance(node, cst.Assign) and _named_loss(node)]
    calls = [node for value in made for node in walk(value) if isinstance(node, cst.Call)]
    own = [call for call in calls if not _OF_LOGITS.search(dotted(call.func))]
    return bool(own) and len(own) == len(calls)


def _named_loss(node: cst.Assign) -> bool:
    return any(dotted(target.target) == "loss" for target in node.targets)


def _who_freezes(reading: Reading, cls: Class, node: cst.CSTNode) -> None:
    """What is trained is not known where a package's class around the model may freeze what it likes."""
    method = reading.settings.get("method")
    if (cls.library or "torch").partition(".")[0] in _PLAIN or (method and method.provenance.kind == "file"):
        return
    reading.state("method", UNKNOWN, node, f"{cls.library} decides what of the model is trained")


def _runs(reading: Reading, made: Object, forward: cst.FunctionDef) -> int:
    """The passes of the model that ``forward`` makes on the way that makes most; 0 for one without gradients."""
    assert made.cls is not None
    held = {name for name, value in made.attributes.items() if any(models.loads_of(value))} | _PARTS
    return most(forward.body, partial(_count, reading, made.cls, held, _DEPTH))


def _count(reading: Reading, cls: Class, held: set[str], depth: int, call: cst.Call) -> int:
    """The passes with gradients that a call makes, itself or in the method that it calls."""
    owner, _, name = dotted(call.func).partition(".")
    method = cls.member(name) if owner == "self" and name and depth else None
    runs = 0
    if _is_the_library_s(call) or (owner == "self" and name.removesuffix(".forward") in held):
        runs = 1
    elif isinstance(method, Function) and method.node is not None:
        runs = most(method.node.body, partial(_count, reading, cls, held, depth - 1))
    if not runs or loops.without_gradients(reading.calls.document_of(call), call):
        return 0
    return runs * (_MANY if _repeated(reading, call) else 1)


def _is_the_library_s(call: cst.Call) -> bool:
    """Whether a call is ``super().forward(…)``."""
    function = call.func
    return isinstance(function, cst.Attribute) and function.attr.value == "forward" and is_super(function.value)


def _repeated(reading: Reading, call: cst.Call) -> bool:
    """Whether a call stands in a loop of its function."""
    document = reading.calls.document_of(call)
    for each in loops.around(document, call):
        if isinstance(each, cst.FunctionDef):
            return False
        if isinstance(each, _LOOPS):
            return True
    return False
