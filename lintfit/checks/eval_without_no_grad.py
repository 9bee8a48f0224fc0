"""The rule eval-without-no-grad: see its page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.checks import loops
from lintfit.checks.context import FileContext, Report
from lintfit.documents import python_edits
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
    if not document.editable or not re.search(r"^import torch\b", document.text, re.MULTILINE):
        return None
    edits = python_edits.insert_statement_before(document, function, "@torch.no_grad()")
    files = tuple(FileEdit(document.path, edit, document) for edit in edits)
    return Fix(f"put @torch.no_grad() on {function.name.value}", Applicability.SAFE, files)
