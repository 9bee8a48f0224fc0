"""Moves ``zero_grad`` behind the optimizer's step, where a loop of the script's own has it elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from lintfit.documents import python_edits
from lintfit.documents.model import Edit
from lintfit.documents.python_reader import PythonDocument
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.own_gradients import by_default, deciding
from lintfit.sources.script.reading.own_pass import Pass
from lintfit.sources.script.reading.plain import steps_optimizer
from lintfit.sources.script.writing.file_edits import Edits, edits_in

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
    call = calls[0].node
    if one.start(call) > one.at:
        if by_default(reading):
            return edits_in(document, python_edits.remove_keyword(document, call, "set_to_none"))
        return edits_in(document, python_edits.set_keyword(document, call, "set_to_none", "True"))
    steps = [each.node for each in one.calls() if steps_optimizer(each) and one.start(each.node) > one.at]
    zero, step = _alone(document, call), _alone(document, steps[0]) if len(steps) == 1 else None
    if zero is None or step is None or not _together(document, one, (zero, step)):
        return None
    code = f"{loops.text(document, call.func)}({'' if by_default(reading) else 'set_to_none=True'})"
    removed: Sequence[Edit] = python_edits.remove_statement(document, zero)
    return edits_in(document, (*removed, *python_edits.insert_statement_after(document, step, code)))


def _alone(document: PythonDocument, call: cst.Call) -> cst.SimpleStatementLine | None:
    """The line that a call is all of."""
    line = loops.line_of(document, call)
    return line if line is not None and len(line.body) == 1 and document.parent(call) is line.body[0] else None


def _together(document: PythonDocument, one: Pass, lines: Sequence[cst.CSTNode]) -> bool:
    """Whether the backward pass, ``zero_grad`` and the step stand in one block, so that each run comes by all."""
    backward = _alone(document, one.backward)
    block = document.parent(backward) if backward is not None else None
    return block is not None and all(document.parent(line) is block for line in lines)
