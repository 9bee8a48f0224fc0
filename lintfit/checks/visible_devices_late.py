from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.documents.model import Edit
from lintfit.documents.python_reader import PythonDocument
from lintfit.findings.model import Applicability, Related
from lintfit.sources.script.reading import loops

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_MISSPELT = ("CUDA_AVAILABLE_DEVICES", "CUDA_VISIBLE_DEVICE", "CUDA_VISBLE_DEVICES", "CUDA_VISIBLE_GPUS")
_WRITTEN = re.compile(
    rf"""^([ \t]*)os\.environ\[["']({"|".join((_VARIABLE, *_MISSPELT))})["']\]\s*=(?!=)""", re.MULTILINE
)
_BLOCK = re.compile(r"^([ \t]*)(\S+)[^\n]*$", re.MULTILINE)
_STARTS = re.compile(
    r"torch\.cuda\.(is_available|set_device|current_device|init|synchronize|get_device_\w+|mem_get_info)"
    r"|.*\.cuda"
)
"""Calls that start CUDA. ``device_count`` asks NVML (``_device_count_nvml``), ``empty_cache`` does nothing until then,
and ``manual_seed`` waits for it (``torch/cuda/memory.py``, ``_lazy_call``)."""


def check_file(context: FileContext) -> Iterator[Report]:
    document = context.document
    if not isinstance(document, PythonDocument) or not context.runs or "os.environ[" not in document.text:
        return
    if not _at_import(document.text) or document.module is None:
        return
    started: cst.Call | None = None
    for statement in document.module.body:
        if isinstance(statement, cst.FunctionDef | cst.ClassDef):
            continue
        for node in (statement, *loops.inside(statement)):
            if isinstance(node, cst.Call) and _STARTS.fullmatch(loops.name_of(node.func) or ""):
                started = started or node
            elif isinstance(node, cst.Assign):
                written = _variable(node)
                if written in _MISSPELT:
                    yield _misspelt(document, node, str(written))
                elif written == _VARIABLE and started is not None:
                    yield Report(
                        loops.place(document, node),
                        f"{_VARIABLE} is set when {loops.text(document, started)} has started CUDA: it has no effect "
                        "any more",
                        related=(Related(loops.place(document, started), "CUDA starts here"),),
                        help="set it on the command line, or at the top of the file",
                    )


def _at_import(text: str) -> bool:
    """Whether the variable is written outside of functions and classes: told by indentation, without parsing."""
    for match in _WRITTEN.finditer(text):
        depth = len(match[1])
        for line in reversed(list(_BLOCK.finditer(text, 0, match.start()))):
            if depth and len(line[1]) < depth:
                depth = len(line[1])
                if line[2] in ("def", "class", "async"):
                    break
        else:
            return True
    return False


def _variable(node: cst.Assign) -> str | None:
    """The environment variable that an assignment sets."""
    match node.targets[0].target:
        case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            found = key.evaluated_value
            return found if loops.name_of(value) == "os.environ" and isinstance(found, str) else None
    return None


def _misspelt(document: PythonDocument, node: cst.Assign, name: str) -> Report:
    span = document.span(node.targets[0].target)
    text = document.slice(span)
    fix = None
    if document.editable:
        edit = Edit(span, text.replace(name, _VARIABLE))
        fix = spliced(document, f"rename it to {_VARIABLE}", Applicability.UNSAFE, [edit])
    return Report(
        loops.place(document, node),
        f"nothing reads {name}: every process sees all GPUs",
        fix=fix,
        help=f"the variable's name is {_VARIABLE}",
    )
