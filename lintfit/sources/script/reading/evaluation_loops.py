"""Loops of a script's own that put a model through batches in evaluation mode, and whether they build graphs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.loops import Loop

_GRADIENTS = re.compile(
    r"no_grad|inference_mode|set_grad_enabled|enable_grad|autograd|requires_grad|\.grad\b|backward|\.train\(|jit\.|onnx"
)
"""What makes it doubtful that a function builds graphs for nothing."""
_ELSEWHERE = re.compile(r"set_grad_enabled\(|requires_grad|import lightning|pytorch_lightning")


FORWARD = re.compile(r"\.(forward|module|network)$")
"""Parts of a model that run all of it."""


class Evaluation(NamedTuple):
    """One such loop: ``model.eval()``, and the call of that model, or of its ``generate``, which makes no graph, where
    ``generates`` says so. ``function`` is to be told ``no_grad`` where it is not None."""

    loop: Loop
    switch: cst.Call
    forward: cst.Call
    function: cst.FunctionDef | None = None
    generates: bool = False


@loops.kept
def with_graphs(document: PythonDocument) -> Iterator[Evaluation]:
    """Those that certainly build the graph of every batch: nothing around them switches gradients off."""
    if document.module is None or _ELSEWHERE.search(document.text) or ".eval(" not in document.text:
        return
    yield from (found for found, function in _evaluating(document) if _called_with_gradients(document, function))
    for loop in loops.loops(document):
        found = _beside_training(document, loop)
        if found is not None:
            yield found


@loops.kept
def with_graphs_in_helper(document: PythonDocument, helper: PythonDocument) -> Iterator[Evaluation]:
    """Those in a module from which a script imports them by their names, and calls them where gradients are on."""
    if document.module is None or _ELSEWHERE.search(document.text) or _ELSEWHERE.search(helper.text):
        return
    for found, function in _evaluating(helper):
        if _imports(document.module, helper, function.name.value) and _called_with_gradients(
            document, function, helper
        ):
            yield found


def _evaluating(document: PythonDocument) -> Iterator[tuple[Evaluation, cst.FunctionDef]]:
    """The loops in a module's own functions that evaluate without a word on gradients."""
    if document.module is None or ".eval(" not in document.text:
        return
    for function in document.module.body:
        if isinstance(function, cst.FunctionDef) and not function.decorators and function.asynchronous is None:
            found = _forward(document, function)
            if found is not None:
                yield found, function


def _imports(module: cst.Module, helper: PythonDocument, name: str) -> bool:
    """Whether a script says ``from helper import name`` at its top."""
    for line in module.body:
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if not isinstance(statement, cst.ImportFrom) or isinstance(statement.names, cst.ImportStar):
                continue
            origin = loops.name_of(statement.module) if statement.module is not None else None
            if (origin or "").rpartition(".")[2] != helper.path.stem:
                continue
            if any(alias.evaluated_name == name and alias.asname is None for alias in statement.names):
                return True
    return False


@loops.kept
def without_graphs(document: PythonDocument) -> Iterator[Evaluation]:
    """Those that run under ``no_grad`` or its like, in a function that has switched the model to ``eval()`` before."""
    for loop, evals in _in_evaluation(document):
        found = _call(document, loop, evals, _called)
        if found is not None and loops.without_gradients(document, found.forward):
            yield found


@loops.kept
def generating(document: PythonDocument) -> Iterator[Evaluation]:
    """Those that have a model generate which was switched to ``eval()`` before."""
    if ".generate(" not in document.text:
        return
    for loop, evals in _in_evaluation(document):
        found = _call(document, loop, evals, _generates)
        if found is not None:
            yield found._replace(generates=True)


@lru_cache(maxsize=256)
def _in_evaluation(document: PythonDocument) -> tuple[tuple[Loop, dict[str, cst.Call]], ...]:
    """Loops without a backward pass whose function switches models to ``eval()``, with these by name."""
    if document.module is None or ".eval(" not in document.text:
        return ()
    found = ((loop, _evals(loop.function or document.module)) for loop in loops.loops(document))
    return tuple((loop, evals) for loop, evals in found if evals and not any(loops.backwards(loop.node)))


def _called(call: cst.Call) -> str | None:
    """The name of the model that is called."""
    return FORWARD.sub("", loops.name_of(call.func) or "")


def _generates(call: cst.Call) -> str | None:
    """The name of the model that a call has generate: ``model.generate``, ``unwrap_model(model).generate``."""
    match call.func:
        case cst.Attribute(value=cst.Call(func=func, args=[cst.Arg(value=cst.Name(value=name)), *_]), attr=attr):
            unwraps = (loops.name_of(func) or "").rpartition(".")[2] == "unwrap_model"
            return name if unwraps and attr.value == "generate" else None
        case cst.Attribute(attr=cst.Name(value="generate")):
            return FORWARD.sub("", (loops.name_of(call.func) or "").removesuffix(".generate"))
    return None


@lru_cache(maxsize=1024)
def _evals(scope: cst.FunctionDef | cst.Module) -> dict[str, cst.Call]:
    """Names that are switched to ``eval()`` in a function, or in the module."""
    return {
        name.removesuffix(".eval"): call
        for call in loops.inside(scope.body if isinstance(scope, cst.FunctionDef) else scope)
        if isinstance(call, cst.Call) and (name := loops.name_of(call.func)) is not None and name.endswith(".eval")
    }


def _call(
    document: PythonDocument, loop: Loop, evals: dict[str, cst.Call], model: Callable[[cst.Call], str | None]
) -> Evaluation | None:
    """The first call in a loop by which a ``model`` runs that was switched to ``eval()`` above it."""
    start = document.span(loop.node).start
    for node in loops.inside(loop.node.body):
        name = model(node) if isinstance(node, cst.Call) else None
        if isinstance(node, cst.Call) and name in evals and document.span(evals[name]).start < start:
            return Evaluation(loop, evals[name], node)
    return None


def _forward(document: PythonDocument, function: cst.FunctionDef) -> Evaluation | None:
    """``model.eval()`` and the call of that model in a loop behind it; None where gradients may be wanted."""
    body = document.slice(document.span(function.body)).replace(".eval(", "")
    # A trailing .train() puts the model back; it may stand behind the loop, but not decide anything here.
    if _GRADIENTS.search(body.replace(".train()", "")):
        return None
    evals = _evals(function)
    for loop in loops.loops(document):
        found = _call(document, loop, evals, _called) if loop.function is function else None
        if found is not None:
            return found._replace(function=function)
    return None


def _beside_training(document: PythonDocument, loop: Loop) -> Evaluation | None:
    """The same for a loop of the function that trains, which runs with gradients or would not train.

    ``model.eval()`` stands above the loop in its own block, with no ``model.train()`` in between.
    """
    trains = loop.function.body if loop.function is not None else document.module
    assert trains is not None
    if _GRADIENTS.search(document.slice(document.span(loop.node))) or loops.without_gradients(document, loop.node):
        return None
    found = _call(document, loop, _switched(document, loop.node), _called)
    if found is None or _is_one_layer(trains, (loops.name_of(found.switch.func) or "").removesuffix(".eval")):
        return None
    return found if any(loops.backwards(trains)) else None


_LAYERS = frozenset({"Linear", "LazyLinear", "Bilinear"})
"""Layers of torch whose graph holds no more than their input, which is there anyway."""


def _is_one_layer(scope: cst.CSTNode, name: str) -> bool:
    """Whether all that a name is made of is a single layer: a classifier over embeddings that are kept."""
    made = [value for each, value, _ in loops.assignments(scope) if each == name and value is not None]
    calls = [loops.name_of(value.func) or "" for value in made if isinstance(value, cst.Call)]
    layers = [call.rpartition(".")[2] in _LAYERS for call in calls if not call.startswith(f"{name}.")]
    return bool(layers) and all(layers) and len(calls) == len(made)


def _switched(document: PythonDocument, loop: cst.For | cst.While) -> dict[str, cst.Call]:
    """Names that were switched to ``eval()`` in a loop's own block, where the loop begins."""
    block = document.parent(loop)
    found: dict[str, cst.Call] = {}
    for before, model, switch in _switches(block) if isinstance(block, cst.IndentedBlock | cst.Module) else ():
        if document.span(before).start >= document.span(loop).start:
            break
        found.pop(model, None)
        if switch is not None and isinstance(before, cst.SimpleStatementLine):
            found[model] = switch
    return found


@lru_cache(maxsize=1024)
def _switches(block: cst.IndentedBlock | cst.Module) -> tuple[tuple[cst.CSTNode, str, cst.Call | None], ...]:
    """What switches models to ``eval()``, and back (None), in the statements of a block, in their order: the statement,
    the model's name and the call."""
    calls = (
        (statement, node, name)
        for statement in block.body
        for node in (statement, *loops.inside(statement))
        if isinstance(node, cst.Call) and (name := loops.name_of(node.func)) is not None
    )
    ends = {".eval": True, ".train": False}
    return tuple(
        (statement, name.removesuffix(end), node if on else None)
        for statement, node, name in calls
        for end, on in ends.items()
        if name.endswith(end)
    )


def _called_with_gradients(
    document: PythonDocument, function: cst.FunctionDef, helper: PythonDocument | None = None
) -> bool:
    """Whether the function is only called by its name, in this file or the helper that it is in, and never under
    ``no_grad``; this file calls it."""
    calls = [_plain_calls(each, function) for each in (document, *([helper] if helper is not None else []))]
    return None not in calls and bool(calls[0])


def _plain_calls(document: PythonDocument, function: cst.FunctionDef) -> int | None:
    """How often a file calls a function by its name; None where it does anything else with it, or under ``no_grad``."""
    assert document.module is not None
    name, calls = function.name.value, 0
    for node in walk(document.module):
        if not isinstance(node, cst.Name) or node.value != name or node is function.name:
            continue
        parent = document.parent(node)
        if isinstance(parent, cst.ImportAlias):
            continue
        if not isinstance(parent, cst.Call) or parent.func is not node or loops.without_gradients(document, parent):
            return None
        calls += 1
    return calls


_WITH_GRAPH = r"(\.loss|\.logits|\[0\])?(\.(mean|sum|cpu|float)\(\))*(\s*[*/]\s*[\w.]+(\([\w., ]*\))?)?"
"""What may follow the name of a result that keeps its graph."""


def keeper(document: PythonDocument, found: Evaluation) -> tuple[str, cst.CSTNode] | None:
    """What a loop adds its results to, or puts them into, with their graphs: its name and where that is done."""
    body = found.loop.node.body
    results = {name for name, value, _ in loops.assignments(body) if value is not None and _is_result(value, found)}
    for name, value, _ in loops.assignments(body):
        if value is not None and any(_has_graph(loops.text(document, value), each) for each in tuple(results)):
            results.add(name)
    for node in loops.inside(body):
        match node:
            case cst.AugAssign(target=cst.Name(value=target), operator=cst.AddAssign(), value=value):
                kept: cst.BaseExpression = value
            case cst.Call(func=cst.Attribute(value=cst.Name(value=target), attr=cst.Name(value="append")), args=[only]):
                kept = only.value
            case _:
                continue
        if _is_result(kept, found) or any(_has_graph(loops.text(document, kept), each) for each in results):
            return target, node
    return None


def _is_result(value: cst.BaseExpression, found: Evaluation) -> bool:
    """The forward itself, or the loss or logits of what it gives."""
    inner = value.value if isinstance(value, cst.Attribute) and value.attr.value in ("loss", "logits") else value
    return inner is found.forward


def _has_graph(text: str, name: str) -> bool:
    return re.fullmatch(re.escape(name) + _WITH_GRAPH, text.strip()) is not None
