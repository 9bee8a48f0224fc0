from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.documents import python_edits
from lintfit.documents.model import Edit, Span
from lintfit.documents.python_reader import PythonDocument
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.frozen import replace
from lintfit.sources.script.reading import evaluation_loops, loops, own_evaluation
from lintfit.sources.script.reading.evaluation_loops import Evaluation
from lintfit.sources.script.source import ScriptSource


def check_file(context: FileContext) -> Iterator[Report]:
    source = context.source
    if not isinstance(source, ScriptSource) or not source.facts.trains or source.document.module is None:
        return
    severity = None if _is_of_language(context, source) else Severity.INFO
    for report in _reports(source):
        yield report if severity is None else replace(report, severity=severity)


def _is_of_language(context: FileContext, source: ScriptSource) -> bool:
    """Whether the script may train a language model: the graph of a small net of its own costs little."""
    known = any(run.facts is not None for run in context.runs)
    return known or any(load.taken is not False for load in source.facts.loads)


def _reports(source: ScriptSource) -> Iterator[Report]:
    left = {id(record.node) for record in source.reading.records if record.taken is False}
    for found in evaluation_loops.with_graphs(source.document):
        small = own_evaluation.is_small(source.reading, found)
        if found.function is not None:
            yield _of_size(_report(source.document, found, found.function), small)
        elif id(found.forward) not in left:
            yield _of_size(_inline(source.document, found), small)
    for helper in source.reading.calls.documents:
        if helper is not source.document:
            for found in evaluation_loops.with_graphs_in_helper(source.document, helper):
                assert found.function is not None
                yield _report(helper, found, found.function)


def _of_size(report: Report, small: bool) -> Report:
    return replace(report, severity=Severity.INFO) if small else report


def _inline(document: PythonDocument, found: Evaluation) -> Report:
    model = loops.text(document, found.switch.func).removesuffix(".eval")
    cost, related = _kept(document, found)
    return Report(
        loops.place(document, found.forward),
        f"{model} evaluates without torch.no_grad(): {cost}",
        related=related,
        fix=_around(document, found.forward),
        help="put the forward of the evaluation under torch.no_grad()",
    )


def _around(document: PythonDocument, forward: cst.Call) -> Fix | None:
    """``with torch.no_grad():`` around the one statement that calls the model."""
    statement = loops.line_of(document, forward)
    if statement is None or not _writable(document) or document.module is None:
        return None
    span = document.span(statement)
    if document.file.newline in document.slice(span):
        return None
    indent = document.text[document.text.rfind("\n", 0, span.start) + 1 : span.start]
    above = f"with torch.no_grad():{document.file.newline}{indent}{document.module.default_indent}"
    return spliced(
        document,
        "put the forward under torch.no_grad()",
        Applicability.SAFE,
        [Edit(Span(span.start, span.start), above)],
    )


def _report(document: PythonDocument, found: Evaluation, function: cst.FunctionDef) -> Report:
    cost, related = _kept(document, found)
    return Report(
        loops.place(document, found.forward),
        f"{function.name.value} evaluates without torch.no_grad(): {cost}",
        related=related,
        fix=_fix(document, function),
        help=f"put @torch.no_grad() on {function.name.value}",
    )


def _kept(document: PythonDocument, found: Evaluation) -> tuple[str, tuple[Related, ...]]:
    """What the graphs cost: those of a batch, or of all where something holds on to them."""
    eval_ = Related(loops.place(document, found.switch), "eval() changes dropout and norms, not the graph")
    keeper = evaluation_loops.keeper(document, found)
    if keeper is None:
        return "each batch keeps its activations as in training", (eval_,)
    held = Related(loops.place(document, keeper[1]), "the graph goes when the last result that refers to it does")
    return f"{keeper[0]} keeps the activations of all batches until the evaluation is over", (eval_, held)


def _fix(document: PythonDocument, function: cst.FunctionDef) -> Fix | None:
    if not _writable(document):
        return None
    edits = python_edits.insert_statement_before(document, function, "@torch.no_grad()")
    return spliced(document, f"put @torch.no_grad() on {function.name.value}", Applicability.SAFE, edits)


def _writable(document: PythonDocument) -> bool:
    return document.editable and re.search(r"^import torch\b", document.text, re.MULTILINE) is not None
