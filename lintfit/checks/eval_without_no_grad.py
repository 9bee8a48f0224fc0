"""The rule eval-without-no-grad: see its page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.checks import loops
from lintfit.checks.context import FileContext, Report
from lintfit.checks.loops import Loop
from lintfit.documents import python_edits
from lintfit.documents.model import Edit, Span
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.findings import Applicability, FileEdit, Fix, Related
from lintfit.sources.script import ScriptSource

_GRADIENTS = re.compile(
    r"no_grad|inference_mode|set_grad_enabled|enable_grad|autograd|requires_grad|\.grad\b|backward|\.train\(|jit\.|onnx"
)
"""What makes it doubtful that a function builds graphs for nothing."""
_ELSEWHERE = re.compile(r"set_grad_enabled\(|requires_grad|import lightning|pytorch_lightning")


_FORWARD = re.compile(r"\.(forward|module|network)$")
"""Parts of a model that run all of it."""


def check_file(context: FileContext) -> Iterator[Report]:
    source = context.source
    if not isinstance(source, ScriptSource) or not source.facts.trains or source.document.module is None:
        return
    document = source.document
    assert document.module is not None
    if _ELSEWHERE.search(document.text) or ".eval(" not in document.text:
        return
    for function in document.module.body:
        if isinstance(function, cst.FunctionDef) and not function.decorators and function.asynchronous is None:
            forward = _forward(document, function)
            if forward is not None and _called_with_gradients(document, function):
                yield _report(document, function, *forward)
    left = {id(record.node) for record in source.reading.records if record.taken is False}
    for loop in loops.loops(document):
        found = _beside_training(document, loop)
        if found is not None and id(found[1]) not in left:
            yield _inline(document, *found)


def _forward(document: PythonDocument, function: cst.FunctionDef) -> tuple[cst.Call, cst.Call] | None:
    """``model.eval()`` and the call of that model in a loop behind it; None where gradients may be wanted."""
    body = loops.text(document, function.body).replace(".eval(", "")
    # A trailing .train() puts the model back; it may stand behind the loop, but not decide anything here.
    if _GRADIENTS.search(body.replace(".train()", "")):
        return None
    evals = {
        name.removesuffix(".eval"): call
        for call in loops.inside(function.body)
        if isinstance(call, cst.Call) and (name := loops.name_of(call.func)) is not None and name.endswith(".eval")
    }
    for loop in loops.loops(document):
        for node in loops.inside(loop.node.body) if loop.function is function else ():
            name = _FORWARD.sub("", loops.name_of(node.func) or "") if isinstance(node, cst.Call) else None
            before = (
                name is not None and name in evals and document.span(evals[name]).start < document.span(loop.node).start
            )
            if isinstance(node, cst.Call) and name is not None and before:
                return evals[name], node
    return None


def _beside_training(document: PythonDocument, loop: Loop) -> tuple[cst.Call, cst.Call] | None:
    """The same for a loop of the function that trains, which runs with gradients or would not train.

    ``model.eval()`` stands above the loop in its own block, with no ``model.train()`` in between.
    """
    trains = loop.function.body if loop.function is not None else document.module
    assert trains is not None
    own = loops.text(document, loop.node)
    if _GRADIENTS.search(own) or loops.without_gradients(document, loop.node):
        return None
    evals = _switched(document, loop.node)
    for node in loops.inside(loop.node.body):
        name = _FORWARD.sub("", loops.name_of(node.func) or "") if isinstance(node, cst.Call) else None
        if isinstance(node, cst.Call) and name in evals and any(True for _ in loops.backwards(trains)):
            return evals[name], node
    return None


def _switched(document: PythonDocument, loop: cst.For | cst.While) -> dict[str, cst.Call]:
    """Names that were switched to ``eval()`` in a loop's own block, where the loop begins."""
    block = document.parent(loop)
    found: dict[str, cst.Call] = {}
    for statement in block.body if isinstance(block, cst.IndentedBlock | cst.Module) else ():
        if statement is loop:
            break
        for node in (statement, *loops.inside(statement)):
            name = loops.name_of(node.func) if isinstance(node, cst.Call) else None
            if isinstance(node, cst.Call) and name is not None and name.endswith((".eval", ".train")):
                model, _, mode = name.rpartition(".")
                found.pop(model, None)
                if mode == "eval" and isinstance(statement, cst.SimpleStatementLine):
                    found[model] = node
    return found


def _inline(document: PythonDocument, switch: cst.Call, forward: cst.Call) -> Report:
    model = loops.text(document, switch.func).removesuffix(".eval")
    return Report(
        loops.place(document, forward),
        f"{model} evaluates without torch.no_grad(): each batch keeps its activations as in training",
        related=(Related(loops.place(document, switch), "eval() changes dropout and norms, not the graph"),),
        fix=_around(document, forward),
        help="put the forward of the evaluation under torch.no_grad()",
    )


def _around(document: PythonDocument, forward: cst.Call) -> Fix | None:
    """``with torch.no_grad():`` around the one statement that calls the model."""
    statement: cst.CSTNode | None = forward
    while statement is not None and not isinstance(statement, cst.SimpleStatementLine):
        statement = document.parent(statement)
    if statement is None or not _writable(document) or document.module is None:
        return None
    span = document.span(statement)
    if document.file.newline in document.slice(span):
        return None
    indent = document.text[document.text.rfind("\n", 0, span.start) + 1 : span.start]
    above = f"with torch.no_grad():{document.file.newline}{indent}{document.module.default_indent}"
    edit = FileEdit(document.path, Edit(Span(span.start, span.start), above), document)
    return Fix("put the forward under torch.no_grad()", Applicability.SAFE, (edit,))


def _called_with_gradients(document: PythonDocument, function: cst.FunctionDef) -> bool:
    """Whether the function is only called by its name, in this file, and never under ``no_grad``."""
    assert document.module is not None
    name, calls = function.name.value, 0
    for node in walk(document.module):
        if not isinstance(node, cst.Name) or node.value != name or node is function.name:
            continue
        parent = document.parent(node)
        if not isinstance(parent, cst.Call) or parent.func is not node:
            return False
        if loops.without_gradients(document, parent):
            return False
        calls += 1
    return calls > 0


def _report(document: PythonDocument, function: cst.FunctionDef, switch: cst.Call, forward: cst.Call) -> Report:
    return Report(
        loops.place(document, forward),
        f"{function.name.value} evaluates without torch.no_grad(): each batch keeps its activations as in training",
        related=(Related(loops.place(document, switch), "eval() changes dropout and norms, not the graph"),),
        fix=_fix(document, function),
        help=f"put @torch.no_grad() on {function.name.value}",
    )


def _fix(document: PythonDocument, function: cst.FunctionDef) -> Fix | None:
    if not _writable(document):
        return None
    edits = python_edits.insert_statement_before(document, function, "@torch.no_grad()")
    files = tuple(FileEdit(document.path, edit, document) for edit in edits)
    return Fix(f"put @torch.no_grad() on {function.name.value}", Applicability.SAFE, files)


def _writable(document: PythonDocument) -> bool:
    return document.editable and re.search(r"^import torch\b", document.text, re.MULTILINE) is not None
