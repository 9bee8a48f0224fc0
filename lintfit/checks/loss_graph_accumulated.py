from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.checks.helpers.context import FileContext, Report
from lintfit.checks.helpers.fixes import spliced
from lintfit.documents.model import Edit, Span
from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.loops import Loop

_EMPTY = re.compile(r"\s*(0|0\.0*|\[\]|list\(\)|torch\.(tensor|zeros)\(.*\))\s*", re.DOTALL)
"""What an accumulator starts from."""
_WORTH_IT = re.compile(r"\+=|\.append\(")
_DATA = re.compile(r"load|batch|data|enumerate|tqdm|iter|step|epoch|prefetch", re.IGNORECASE)
_A_STEP = re.compile(r"load|batch|data|step|iter|prefetch", re.IGNORECASE)
"""What a loop over steps runs over, or asks for."""
_CALLERS = 20
"""Functions that call one another, all in all, which are followed to a loop: each is looked for in all of the code."""
_FEW = re.compile(r"range\((\d{1,2}|.{0,200}?(?:accum|micro).*)\)")


def check_file(context: FileContext) -> Iterator[Report]:
    document = context.document
    if not isinstance(document, PythonDocument):
        return
    if ".backward(" not in document.text or not _WORTH_IT.search(document.text):
        return
    code = dict.fromkeys(each for run in context.runs for each in run.documents if isinstance(each, PythonDocument))
    scripts = (run.script for run in context.runs if run.script is not None)
    if not any(script.facts.trains for script in scripts):
        return
    for loop in loops.loops(document):
        for kept, target in _kept(loop):
            report = _report(document, loop, kept, target, tuple({**code, document: None}))
            if report is not None:
                yield report


def _kept(loop: Loop) -> Iterator[tuple[cst.Name, str]]:
    """Names that are added to, or put into, something else in a loop: ``total += loss``, ``losses.append(loss)``."""
    for node in loops.inside(loop.node.body, nested_loops=False):
        match node:
            case cst.AugAssign(target=cst.Name(value=target), operator=cst.AddAssign(), value=value):
                name = loops.summed(value)
                if name is not None and name.value != target:
                    yield name, target
            case cst.Call(func=cst.Attribute(value=cst.Name(value=target), attr=cst.Name(value="append")), args=[only]):
                if isinstance(only.value, cst.Name):
                    yield only.value, target


def _report(
    document: PythonDocument, loop: Loop, kept: cst.Name, target: str, code: tuple[PythonDocument, ...]
) -> Report | None:
    function = loop.function or document.module
    assert function is not None
    steps = [call for call, name in loops.backwards(loop.node.body) if name == kept.value]
    if not steps or loops.without_gradients(document, kept) or _few(document, loop):
        return None
    if any(name == target for _, name in loops.backwards(function)) or _reaches_backward(function, target):
        return None
    backward = document.span(steps[0]).start
    own = list(loops.assignments(loop.node.body))
    if any(name == kept.value and document.span(where).start > backward for name, _, where in own):
        return None
    if any(name == target for name, _, _ in own) or _cleared(loop, target):
        return None
    starts = [value for name, value, _ in loops.assignments(function) if name == target]
    if not starts or not all(v is not None and _EMPTY.fullmatch(loops.text(document, v)) for v in starts):
        return None
    called = list(_called_in(loop.function, code, set()))
    if any(_A_STEP.search(over) and "epoch" not in over.lower() for over in called):
        return None
    anew = bool(called) or any(
        name == target for around in loop.around for name, _, _ in loops.assignments(around.body)
    )
    return Report(
        loops.place(document, kept),
        f"{target} keeps {kept.value} with its graph: the nodes of every step stay in host memory"
        f"{' until it starts anew' if anew else ''}",
        severity=Severity.INFO if anew else Severity.WARNING,
        related=(Related(loops.place(document, steps[0]), "the graph's tensors are freed here, its nodes are not"),),
        fix=_fix(document, kept),
        help=f"keep {kept.value}.detach()",
    )


def _called_in(function: cst.FunctionDef | None, code: tuple[PythonDocument, ...], seen: set[str]) -> Iterator[str]:
    """What the loops run over, or ask for, in which a function is called, or one that calls it: what it makes for
    itself starts anew each time."""
    if function is None or function.name.value in seen or len(seen) == _CALLERS:
        return
    seen.add(function.name.value)
    for document in code:
        if document.module is None or function.name.value not in document.text:
            continue
        for loop in loops.loops(document):
            if _calls(loop.node.body, function):
                head = (loop.node.target, loop.node.iter) if isinstance(loop.node, cst.For) else (loop.node.test,)
                yield " ".join(loops.text(document, part) for part in head)
        for caller in walk(document.module):
            if isinstance(caller, cst.FunctionDef) and caller is not function and _calls(caller.body, function):
                yield from _called_in(caller, code, seen)


def _calls(body: cst.CSTNode, function: cst.FunctionDef) -> bool:
    """Whether a function is called below a node, by its name or as a method of the same object, in no loop of its
    own."""
    spelled = (function.name.value, f"self.{function.name.value}")
    calls = (each for each in loops.inside(body, nested_loops=False) if isinstance(each, cst.Call))
    return any(loops.name_of(call.func) in spelled for call in calls)


def _few(document: PythonDocument, loop: Loop) -> bool:
    """Whether a loop makes a handful of steps, or none that is statically known to be many."""
    if not isinstance(loop.node, cst.For):
        return False
    over = loops.text(document, loop.node.iter)
    return bool(_FEW.fullmatch(over)) or not _DATA.search(over + loops.text(document, loop.node.target))


def _reaches_backward(function: cst.CSTNode, target: str) -> bool:
    """Whether something that is made of the accumulator is what ``backward`` starts from."""
    roots = {name for _, name in loops.backwards(function)}
    for name, value, _ in loops.assignments(function):
        if name in roots and value is not None:
            parts = (value, *loops.inside(value))
            if any(isinstance(part, cst.Name) and part.value == target for part in parts):
                return True
    return False


def _cleared(loop: Loop, target: str) -> bool:
    for node in loops.inside(loop.node.body):
        if isinstance(node, cst.Call) and loops.name_of(node.func) in (f"{target}.clear", f"{target}.pop"):
            return True
        if isinstance(node, cst.Del) and target in {n.value for n in loops.inside(node) if isinstance(n, cst.Name)}:
            return True
    return False


def _fix(document: PythonDocument, kept: cst.Name) -> Fix | None:
    if not document.editable:
        return None
    end = document.span(kept).end
    return spliced(document, f"keep {kept.value}.detach()", Applicability.SAFE, [Edit(Span(end, end), ".detach()")])
