"""What a step of the script's own runs: the model once, as is counted, or more than that; and whose loss it is.

A Trainer's class of the script may have a ``compute_loss`` or ``training_step`` of its own, and a loop makes its step
itself. One pass of the model is counted; a second one, a teacher's, or what is handed on to code out of sight is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial

import libcst as cst

from lintfit.settings.uncounted import PAIRED, PASSES
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.values import Ref
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.own_method import STEPS, Method, bases, lineage, method_of
from lintfit.sources.script.reading.own_pass import Pass, own, passes
from lintfit.sources.script.reading.ways import most


def read(reading: Reading) -> None:
    """Note what a step runs that is not counted, and whether it makes a loss of its own of the logits."""
    trainer = reading.found.trainer
    if trainer is not None:
        for name in [cls.name for cls in trainer.classes] or [dotted(trainer.node.func).rpartition(".")[2]]:
            _of_trainer(reading, name)
    elif own(reading):
        _of_loop(reading)


_FOLLOWED = re.compile(r"(Iterative)?(SFT|DPO|GRPO(With\w+)?|KTO|ORPO|CPO|PPO(v2)?|RLOO|Reward)Trainer")
"""TRL's trainers whose step is counted."""


def _of_trainer(reading: Reading, name: str) -> None:
    line = lineage(reading.calls.documents, name)
    for each in (name, *bases(line)):
        known = _of_trl(reading, each)
        if known and _FOLLOWED.fullmatch(known) is None and reading.found.trainer is not None:
            reading.state("uncounted", f"the step of TRL's {known}", reading.found.trainer.node)
            return
    for step in STEPS:
        for document, cls in line:
            method = method_of(cls, step)
            if method is not None:
                _of_method(reading, Method(document, line, method), cls.name.value)
                return


def _of_trl(reading: Reading, name: str) -> str:
    """The class of TRL's trainers that the script has by this name; empty where it is none."""
    made = reading.constants.get(name)
    known = made.name.rpartition(".")[2] if isinstance(made, Ref) and made.name.startswith("trl.") else ""
    return known if known.endswith("Trainer") else ""


def _of_method(reading: Reading, method: Method, cls: str) -> None:
    runs, what = method.runs(), f"{cls}.{method.node.name.value}"
    _note(reading, method.node.name, what, runs, method.others)
    trainer = reading.settings.get("trainer")
    kind = trainer.value if trainer is not None else None
    compares = kind in _PAIRED and not _inherits_from_trl(method)
    if runs and not method.others and (compares or (runs == 1 and method.paired and kind == "causal-lm")):
        line = PAIRED.format(what) if not method.grown else f"the batch that {what} makes"
        reading.state("uncounted", line, method.node.name)
    elif runs > 1 and method.grown and not method.others:
        line = f"the {runs} passes of the model that {what} makes of batches of its own"
        reading.state("uncounted", line, method.node.name)
    inside = loops.inside(method.node.body)
    returned = [node.value for node in inside if isinstance(node, cst.Return) and node.value is not None]
    if _of_logits(method.node.body, returned, {method.model, "self"}):
        reading.state("own_loss", True, method.node.name, f"{what} makes a loss of the logits")


_PAIRED = frozenset({"dpo", "cpo", "orpo"})
"""Trainers that compare two answers; one of the script's own, by its name, does so in a way of its own."""


def _inherits_from_trl(method: Method) -> bool:
    """Whether a trainer's class inherits from one that is none of the script's and has the name of one of TRL's."""
    own = {cls.name.value for _, cls in method.line}
    return any(_FOLLOWED.fullmatch(base) for base in bases(method.line) if base not in own)


def _of_loop(reading: Reading) -> None:
    """The passes with gradients between two backward passes of one loop, and what the loss is made of."""
    before = -1
    for one in passes(reading):
        runs = most(one.scope.body, partial(_forward, one, before))
        before = one.at
        if runs > 1:
            _note(reading, one.backward, "the loop", runs, [])
        named = [cst.Name(name) for name in loops.sources(one.backward)]
        if _of_logits(one.scope.body, named, {one.trained}):
            reading.state("own_loss", True, one.backward, "the loop makes a loss of the logits")


def _forward(one: Pass, before: int, call: cst.Call) -> int:
    """Whether a call is a pass of the model between the last backward pass and this one."""
    return int(before < one.start(call) < one.at and one.is_forward(call))


def _note(reading: Reading, node: cst.CSTNode, what: str, runs: int, others: Sequence[str]) -> None:
    if others:
        line = f"what {' and '.join(dict.fromkeys(others))} in {what} runs beside one pass of the model"
    elif runs > 1:
        line = PASSES.format(runs, what)
    elif not runs:
        line = f"what {what} runs, which calls the model out of sight"
    else:
        return
    reading.state("uncounted", line, node)


def _of_logits(body: cst.CSTNode, ends: Iterable[cst.BaseExpression], given: set[str]) -> bool:
    """Whether a loss is made of logits, followed back from ``ends`` through the names of ``body``."""
    bound: dict[str, list[cst.BaseExpression]] = {}
    for name, value, _ in loops.assignments(body):
        if value is not None:
            bound.setdefault(name, []).append(value)
    waiting, seen = list(ends), set(given)
    while waiting:
        expression = waiting.pop()
        if any(_is_logits(node) for node in (expression, *loops.inside(expression))):
            return True
        for name in loops.names(expression):
            if name not in seen:
                seen.add(name)
                waiting += bound.get(name, ())
    return False


def _is_logits(node: cst.CSTNode) -> bool:
    match node:
        case cst.Attribute(attr=cst.Name(value="logits")):
            return True
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            return key.evaluated_value == "logits"
        case cst.Call(
            func=cst.Attribute(attr=cst.Name(value="get" | "pop")), args=[cst.Arg(value=cst.SimpleString() as key), *_]
        ):
            return key.evaluated_value == "logits"
    return False
