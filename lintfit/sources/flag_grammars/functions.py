"""The parsers that make flags of a function's parameters or a class's fields: fire, click, typer, tyro.

What they take was tried with fire 0.7.1, click 8.5.1, typer 0.29.2 and tyro 1.0.17. Only names are looked at; none of
the last three takes an abbreviation, and fire only that to one letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from lintfit.documents.patterns import occurs
from lintfit.sources.flag_grammars.grammar import Grammar, Read
from lintfit.sources.flag_grammars.options import Option
from lintfit.sources.script.interpreter.expressions import dotted
from lintfit.sources.script.interpreter.values import Class, Function, Record

if TYPE_CHECKING:
    from lintfit.documents.python_reader import PythonDocument
    from lintfit.sources.script.interpreter.state import Walk

_CLICK = re.compile(r"^\s*(?:import click\b|from click import)", re.MULTILINE)
_COMMAND, _DECLARES = frozenset({"command"}), frozenset({"option", "argument", "version_option", "help_option"})
_SIMPLE = frozenset({"bool", "int", "float", "str"})


def made_of_functions(walk: Walk, documents: Sequence[PythonDocument]) -> Iterator[Read]:
    """The parsers of a walk that are made of functions and classes wholly in sight."""
    for record in walk.records:
        if record.taken is True and not record.spreads and record.function in _MAKERS:
            made = _MAKERS[record.function](record)
            if made is not None:
                yield made
    yield from _click(walk, documents[0])


def _grammar(options: list[Option]) -> Grammar:
    return Grammar(own=tuple(options), abbreviates=False, positional=True)


def _parameters(record: Record) -> list[cst.Param] | None:
    """The parameters of the function that a call is handed, all of them named; None for anything else."""
    target = record.value(0, "component", "f")
    node = target.node if isinstance(target, Function) and target.bound is None else None
    if not isinstance(node, cst.FunctionDef) or node.decorators or len(record.passed) != 1:
        return None
    parameters = node.params
    if parameters.star_kwarg is not None or isinstance(parameters.star_arg, cst.Param):
        return None
    return [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]


def _fire(record: Record) -> Read | None:
    """Fire calls the function with the flags that it knows, and complains of the others when that has returned."""
    parameters = _parameters(record)
    if parameters is None:
        return None
    options: list[Option] = []
    for name in (parameter.name.value for parameter in parameters):
        full = (name, name.replace("_", "-"), f"no{name}", f"no{name.replace('_', '-')}", name[0])
        written = tuple(f"{dashes}{each}" for dashes in ("--", "-") for each in full)
        options.append(Option(tuple(dict.fromkeys(written)), nargs="*"))
    return Read("fire", _grammar(options), stops=False)


def _typer(record: Record) -> Read | None:
    parameters = _parameters(record)
    if parameters is None or any(isinstance(each.default, cst.Call) or each.annotation is None for each in parameters):
        return None
    names = [parameter.name.value.replace("_", "-") for parameter in parameters]
    written = [(f"--{name}", f"--no-{name}") for name in names]
    return Read("typer", _grammar([Option(each, nargs="*") for each in written]))


def _tyro(record: Record) -> Read | None:
    target = record.value(0, "f")
    if not isinstance(target, Class) or len(record.passed) != 1:
        return None
    options = _nested(target, "")
    return Read("tyro", _grammar(options)) if options is not None else None


def _nested(cls: Class, prefix: str) -> list[Option] | None:
    """The options of a dataclass and of those in it; None where a field is of a type that is not plain."""
    if cls.library is not None or not all(isinstance(base, Class) for base in cls.bases):
        return None
    options: list[Option] = []
    for name, field in cls.all_fields().items():
        if field.cls is not None and field.cls.fields:
            inner = _nested(field.cls, f"{prefix}{name}.")
            if inner is None:
                return None
            options += inner
            continue
        if field.kind not in _SIMPLE or "tyro" in _text(field.node):
            return None
        names = (f"{prefix}{name}", f"{prefix}no_{name}")
        written = [f"--{spelled}" for each in names for spelled in (each, each.replace("_", "-"))]
        options.append(Option(tuple(dict.fromkeys(written)), nargs="*"))
    return options


def _text(node: cst.CSTNode | None) -> str:
    return cst.Module([]).code_for_node(node) if node is not None else ""


_MAKERS = {"fire.Fire": _fire, "typer.run": _typer, "tyro.cli": _tyro}


def _click(walk: Walk, document: PythonDocument) -> Iterator[Read]:
    """The one command of a script whose every decorator is click's."""
    if document.module is None or not occurs(_CLICK, document.text):
        return
    functions = [node for node in document.module.body if isinstance(node, cst.FunctionDef) and node.decorators]
    commands = [node for node in functions if any(_decorates(each, _COMMAND) for each in node.decorators)]
    if len(commands) != 1 or id(commands[0]) not in walk.entered:
        return
    options: list[Option] = []
    for decorator in commands[0].decorators:
        call = decorator.decorator
        if _decorates(decorator, _COMMAND):
            if isinstance(call, cst.Call) and any(each.star or each.keyword is not None for each in call.args):
                return
            continue
        names = _names(call) if isinstance(call, cst.Call) and _decorates(decorator, _DECLARES) else None
        if names is None:
            return
        options.append(Option(names, nargs="*"))
    yield Read("click", _grammar([option for option in options if option.names]))


def _decorates(decorator: cst.Decorator, names: frozenset[str]) -> bool:
    call = decorator.decorator
    called = dotted(call.func if isinstance(call, cst.Call) else call)
    return called.rpartition(".")[2] in names and called.rpartition(".")[0] in ("", "click")


def _names(call: cst.Call) -> tuple[str, ...] | None:
    """The ways to write an option; None where one is not known."""
    found: list[str] = []
    for argument in call.args:
        if argument.star:
            return None
        if argument.keyword is not None:
            continue
        text = argument.value.evaluated_value if isinstance(argument.value, cst.SimpleString) else None
        if not isinstance(text, str):
            return None
        found += [each.strip() for each in text.split("/") if each.strip().startswith("-")]
    return tuple(found)
