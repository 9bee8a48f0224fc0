"""A trainer's class or a callback of the project's own that lets layers be trained by turns (HiFT, LISA)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import takewhile

import libcst as cst

from lintfit.documents.python_walk import code_of, walk
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.values import Items, Record, objects
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.own_method import lineage
from lintfit.sources.script.reading.switched_on import SWITCHED_ON

_PARAMETERS = re.compile(r"\b(?:named_)?parameters\(")
_CLASS = re.compile(r"class[ \t]+(\w+)[ \t]*(?:\(([^()]*)\))?")
_METHOD = re.compile(r"[ \t]+(?:async[ \t]+)?def[ \t]+(\w+)")
_LOOP = re.compile(r"[ \t]+for\b.*\b(?:named_)?parameters\(")


def switched_by(reading: Reading) -> tuple[cst.CSTNode, str] | None:
    """The method of the trainer's class, or of a callback, that goes through a model's parameters and lets some be
    trained, with where to point: what is trained at a time is not what the loads leave open."""
    trainer = reading.found.trainer
    if trainer is None:
        return None
    for name in _classes(reading, trainer):
        line = lineage(reading.calls.documents, name)
        for _, cls in line:
            for method in cls.body.body:
                if isinstance(method, cst.FunctionDef) and method.name.value != "__init__" and _lets_train(method):
                    return method.name, method.name.value
        out_of_sight = {name, *(dotted(base.value).rpartition(".")[2] for _, cls in line for base in cls.bases)}
        out_of_sight -= {cls.name.value for _, cls in line}
        for text in reading.calls.unread_texts():
            for each in sorted(out_of_sight):
                if (known := _in_text(text, each)) is not None:
                    return trainer.node, known
    return None


def _classes(reading: Reading, trainer: Record) -> list[str]:
    """The classes of the trainer and of its callbacks."""
    handed = trainer.keyword("callbacks")
    given = handed.items if isinstance(handed, Items) else ()
    given = [*given, *(each for record in reading.called("add_callback") for each in record.positional)]
    names = [cls.name for cls in trainer.classes] or [dotted(trainer.node.func).rpartition(".")[2]]
    return names + [each.cls.name for value in given for each in objects(value) if each.cls is not None]


def _lets_train(method: cst.FunctionDef) -> bool:
    """Whether a method switches on gradients in a loop over parameters."""
    found = (node for node in walk(method) if isinstance(node, cst.For) and _PARAMETERS.search(code_of(node.iter)))
    return any(SWITCHED_ON.search(code_of(loop.body)) for loop in found)


def _in_text(text: str, name: str) -> str | None:
    """The same method of a class in a module that is too long to be parsed beside the others, as its text has it."""
    if SWITCHED_ON.search(text) is None:
        return None
    waiting, seen = [name], set()
    while waiting:
        seen.add(wanted := waiting.pop())
        for found, body in _blocks(_CLASS, text):
            if found[1] != wanted:
                continue
            for method, code in _blocks(_METHOD, body):
                if method[1] != "__init__" and any(SWITCHED_ON.search(loop) for _, loop in _blocks(_LOOP, code)):
                    return method[1]
            bases = (each.strip().rpartition(".")[2] for each in (found[2] or "").split(","))
            waiting += [each for each in bases if each not in seen]
    return None


def _blocks(head: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """The lines that begin so, each with those that are indented below it."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if (found := head.match(line)) is not None:
            inside = partial(_is_inside, len(line) - len(line.lstrip()))
            yield found, "\n".join(takewhile(inside, lines[at + 1 :]))


def _is_inside(indent: int, line: str) -> bool:
    """Whether a line is part of the block below one that is indented so far."""
    code = line.lstrip()
    return not code or code[0] in "#)" or len(line) - len(code) > indent
