"""Moves ``zero_grad`` behind the optimizer's step, where a loop of the script's own has it elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.model import Edit
from lintfit.documents.python_reader import PythonDocument
from lintfit.sources.python import loops
from lintfit.sources.python.own_gradients import deciding, method
from lintfit.sources.python.own_pass import Pass
from lintfit.sources.python.reading import Reading
from lintfit.sources.python.writer import Edits, edits_in

_READ = re.compile(r"\.grad\b")


def behind_the_step(reading: Reading) -> Edits | None:
    """The edits that let go of gradients as soon as they have been used; None where something may still read them, or
    where it is not one ``zero_grad`` and one step in one block."""
    found = deciding(reading)
    if found is None:
        return None
    one, calls = found
    document = one.document
    if len(calls) != 1 or not document.editable or _READ.search(loops.text(document, one.scope)):
        return None
    by_default = reading.found.accelerator is not None or reading.at_least("torch", 2, 0)
    if one.start(calls[0]) > one.at:
        if by_default:
            return edits_in(document, python_edits.remove_keyword(document, calls[0], "set_to_none"))
        return edits_in(document, python_edits.set_keyword(document, calls[0], "set_to_none", "True"))
    steps = [call for call in one.calls() if _steps(call) and one.start(call) > one.at]
    zero, step = _line(document, calls[0]), _line(document, steps[0]) if len(steps) == 1 else None
    if zero is None or step is None or not _together(document, one, (zero, step)):
        return None
    code = f"{loops.text(document, calls[0].func)}({'' if by_default else 'set_to_none=True'})"
    removed: Sequence[Edit] = python_edits.remove_statement(document, zero)
    return edits_in(document, (*removed, *python_edits.insert_statement_after(document, step, code)))


def _steps(call: cst.Call) -> bool:
    receiver = loops.name_of(call.func.value) if isinstance(call.func, cst.Attribute) else None
    return method(call) == "step" and receiver is not None and re.search(r"optim|scaler", receiver) is not None


def _line(document: PythonDocument, call: cst.Call) -> cst.SimpleStatementLine | None:
    """The line that a call is all of."""
    statement = document.parent(call)
    line = document.parent(statement) if isinstance(statement, cst.Expr) else None
    return line if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None


def _together(document: PythonDocument, one: Pass, lines: Sequence[cst.CSTNode]) -> bool:
    """Whether the backward pass, ``zero_grad`` and the step stand in one block, so that each run comes by all."""
    backward = _line(document, one.backward)
    block = document.parent(backward) if backward is not None else None
    return block is not None and all(document.parent(line) is block for line in lines)
