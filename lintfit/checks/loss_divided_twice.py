from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import spliced
from lintfit.documents import python_edits
from lintfit.documents.model import Edit
from lintfit.documents.python_reader import PythonDocument
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.frozen import replace
from lintfit.run.model import Run
from lintfit.sources.script.reading import loops

_NAME = "gradient_accumulation_steps"


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.script.facts.trainer is not None or run.script.document.module is None:
        return
    if run.value("engine") == "deepspeed" and run.value(_NAME) in (1, None):
        return  # the engine divides there, by its own config's accumulation (``Accelerator.backward``)
    told = _told(run)
    accelerator = run.script.facts.accelerator
    if told is None or accelerator is None or accelerator.assigned_to is None:
        return
    document = run.script.document
    seen: set[int] = set()
    for loop in loops.loops(document):
        for node in loops.inside(loop.node.body):
            if isinstance(node, cst.Call) and loops.name_of(node.func) == f"{accelerator.assigned_to}.backward":
                division = _division(document, node, told) if id(node) not in seen and len(node.args) == 1 else None
                seen.add(id(node))
                if division is not None:
                    report = _report(document, node, accelerator.assigned_to, *division)
                    yield replace(report, severity=Severity.INFO) if _may_be_deepspeeds(run) else report


_DEEPSPEEDS = ("DummyOptim", "deepspeed_plugin", "DeepSpeedPlugin")
"""Names of accelerate's that a loop has for DeepSpeed alone."""


def _may_be_deepspeeds(run: Run) -> bool:
    """Whether nothing says how a script is started that is written for DeepSpeed as well, whose config may say 1."""
    return run.launch is None and run.accelerate is None and run.mentions(*_DEEPSPEEDS)


def _told(run: Run) -> str | None:
    """How the script writes the accumulation that it tells the Accelerator; None where it tells it none, or 1."""
    assert run.script is not None
    accelerator = run.script.facts.accelerator
    asked = accelerator.argument(_NAME) if accelerator is not None else None
    if asked is None or asked.value in (1, None):
        return None
    return asked.place.text


def _division(
    document: PythonDocument, backward: cst.Call, told: str
) -> tuple[cst.CSTNode, cst.BaseExpression, cst.BaseExpression] | None:
    """Where the loss is divided by the accumulation: the statement or expression, what is divided, and by what."""
    handed = backward.args[0].value
    if isinstance(handed, cst.BinaryOperation) and isinstance(handed.operator, cst.Divide):
        return (handed, handed.left, handed.right) if _is_steps(document, handed.right, told) else None
    if not isinstance(handed, cst.Name):
        return None
    for statement in reversed(loops.sibling_before(document, backward)):
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            match small:
                case cst.AugAssign(target=cst.Name(value=name), operator=cst.DivideAssign(), value=by):
                    if name == handed.value and _is_steps(document, by, told):
                        return small, small.target, by
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                    if name != handed.value:
                        continue
                    divides = isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Divide)
                    if isinstance(value, cst.BinaryOperation) and divides and _is_steps(document, value.right, told):
                        return (small if _is_name(value.left, name) else value), value.left, value.right
                    return None
    return None


def _is_name(expression: cst.BaseExpression, name: str) -> bool:
    return isinstance(expression, cst.Name) and expression.value == name


def _is_steps(document: PythonDocument, by: cst.BaseExpression, told: str) -> bool:
    written = loops.text(document, by).strip("() ")
    return written in (told, _NAME) or written.endswith(f".{_NAME}")


def _report(
    document: PythonDocument,
    backward: cst.Call,
    accelerator: str,
    where: cst.CSTNode,
    divided: cst.BaseExpression,
    by: cst.BaseExpression,
) -> Report:
    return Report(
        loops.place(document, where),
        f"the loss is divided by {loops.text(document, by)} here and again by {accelerator}.backward: "
        "the gradients are that many times too small",
        related=(Related(loops.place(document, backward), "this divides by the Accelerator's accumulation"),),
        fix=_fix(document, where, divided),
        help="delete the division",
    )


def _fix(document: PythonDocument, where: cst.CSTNode, divided: cst.BaseExpression) -> Fix | None:
    if not document.editable:
        return None
    if isinstance(where, cst.BaseSmallStatement):
        edits = python_edits.remove_statement(document, where)
    else:
        edits = (Edit(document.span(where), loops.text(document, divided)),)
    return spliced(document, "delete the division", Applicability.UNSAFE, edits)
