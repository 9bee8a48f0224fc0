"""Checkpoints that a script puts on a GPU, and whose name stands as long as it trains: they stay there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.settings.uncounted import KEPT_STATES, KEPT_WEIGHTS
from lintfit.sources.script.reading import loops
from lintfit.sources.script.reading.collector import Reading


def read(reading: Reading) -> None:
    """Note that a loop of the script's own keeps what it goes on from."""
    if reading.found.trainer is not None or not reading.found.trains:
        return
    document = reading.calls.documents[0]
    if "torch.load" not in document.text or "load_state_dict" not in document.text:
        return
    from lintfit.memory.engines.resuming import COPIES_NOT

    copied = not reading.at_least("torch", *COPIES_NOT)
    for name, load in kept(document):
        reading.state("uncounted", KEPT_STATES if copied and has_states(document, name) else KEPT_WEIGHTS, load)
        return


def kept(document: PythonDocument) -> Iterator[tuple[str, cst.Call]]:
    """Checkpoints that are put on a GPU and whose name stands until a loop of training in the same block has ended."""
    for loop in loops.loops(document):
        if loop.around or next(iter(loops.backwards(loop.node)), None) is None:
            continue
        bound: dict[str, cst.Call] = {}
        for statement in _above(document.parent(loop.node), loop.node):
            if isinstance(statement, cst.FunctionDef | cst.ClassDef):
                continue
            for name, value, _ in loops.assignments(statement):
                bound.pop(name, None)
                if isinstance(value, cst.Call) and _on_gpu(document, value):
                    bound[name] = value
            for gone in _deleted(statement):
                bound.pop(gone, None)
        yield from ((name, load) for name, load in bound.items() if _taken(document, name))


def has_states(document: PythonDocument, name: str) -> bool:
    """Whether an optimizer takes its states out of what a name holds."""
    return _taken(document, name, r"\w*optim\w*")


def _taken(document: PythonDocument, name: str, by: str = "") -> bool:
    """Whether a state dict is taken out of what a name holds, by a receiver of such a name."""
    return re.search(rf"{by}\.load_state_dict\(\s*{re.escape(name)}\b", document.text) is not None


def _on_gpu(document: PythonDocument, call: cst.Call) -> bool:
    """Whether it is a ``torch.load`` with a GPU as its ``map_location``, by itself or by a name bound to one."""
    if loops.name_of(call.func) != "torch.load":
        return False
    places = [each.value for each in call.args if each.keyword is not None and each.keyword.value == "map_location"]
    if not places:
        return False
    if isinstance(places[0], cst.Name) and document.module is not None:
        name = places[0].value
        own = bound_above(document, name, call)
        values = (
            [own] if own is not None else [v for bound, v, _ in loops.assignments(document.module) if bound == name]
        )
        return bool(values) and all(value is not None and _is_gpu(document, value) for value in values)
    return _is_gpu(document, places[0])


def _is_gpu(document: PythonDocument, place: cst.BaseExpression) -> bool:
    """Whether an expression is a GPU where there is one: ``"cuda:0"``, ``torch.device("cuda")``, an f-string."""
    match place:
        case cst.IfExp(test=test, body=body):
            return "is_available" in loops.text(document, test) and _is_gpu(document, body)
        case cst.Call(func=func, args=[cst.Arg(value=named), *_]):
            return loops.name_of(func) == "torch.device" and _is_gpu(document, named)
        case cst.SimpleString(raw_value=said):
            return said.startswith("cuda")
        case cst.FormattedString(parts=[cst.FormattedStringText(value=said), *_]):
            return said.startswith("cuda")
    return False


def _deleted(statement: cst.CSTNode) -> Iterator[str]:
    for node in walk(statement):
        if isinstance(node, cst.Del):
            yield from loops.names(node.target)


def bound_above(document: PythonDocument, name: str, user: cst.Call) -> cst.BaseExpression | None:
    """What a name was last bound to above a call: in its own block, or around the ``with`` that it stands in."""
    line: cst.CSTNode | None = loops.line_of(document, user)
    while line is not None:
        block = document.parent(line)
        for statement in reversed(_above(block, line)):
            values = [value for bound, value, _ in loops.assignments(statement) if bound == name]
            if values:
                return values[-1]
        outer = document.parent(block) if isinstance(block, cst.IndentedBlock) else None
        line = outer if isinstance(outer, cst.With | cst.If) else None
    return None


def _above(block: cst.CSTNode | None, line: cst.CSTNode) -> list[cst.CSTNode]:
    """The statements of a block up to one of them."""
    inner = getattr(block, "body", ())
    if isinstance(inner, cst.CSTNode):
        return []  # of a function, whose body is a block of its own
    statements = list(inner)
    return statements[: next((i for i, statement in enumerate(statements) if statement is line), 0)]
