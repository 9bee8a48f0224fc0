"""What rules ask of the loops of a script: statements and names in their order, without guessing what a call does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps
from itertools import islice
from typing import ParamSpec, TypeVar, cast

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import children
from lintfit.frozen import frozen
from lintfit.settings.model import Place
from lintfit.sources.script.interpreter.expressions import dotted

_NO_GRAD = re.compile(r"\b(no_grad|inference_mode|set_grad_enabled)\b")
_SCOPES = frozenset({cst.FunctionDef, cst.Lambda, cst.ClassDef})
_LOOPS = frozenset({cst.For, cst.While})
# Types are looked up: libcst's classes are abstract ones, of which isinstance takes ten times as long to say no.
_BINDINGS = frozenset({cst.Assign, cst.AnnAssign, cst.For, cst.NamedExpr})
_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)


@frozen(eq=False)
class Loop:
    """A loop, the function that it stands in (None for the module) and the loops around it, outermost first."""

    node: cst.For | cst.While
    function: cst.FunctionDef | None
    around: tuple[cst.For | cst.While, ...]


P = ParamSpec("P")
Found = TypeVar("Found")

MOST = 300
"""Loops of a script that are looked at. Of the scripts of 180 public repositories that train, none has 150."""


def kept(find: Callable[P, Iterator[Found]]) -> Callable[P, tuple[Found, ...]]:
    """What is found in documents, kept: rules and launches of one script ask again and again."""

    @lru_cache(maxsize=256)
    @wraps(find)
    def all_of(*arguments: P.args, **named: P.kwargs) -> tuple[Found, ...]:
        return tuple(find(*arguments, **named))

    return cast("Callable[P, tuple[Found, ...]]", all_of)


@lru_cache(maxsize=256)
def loops(document: PythonDocument) -> tuple[Loop, ...]:
    """The loops of a script, the first :data:`MOST`; kept, for rules and launches of one script ask for them again."""
    return tuple(islice(_loops(document.module, None, ()), MOST)) if document.module is not None else ()


def _loops(
    node: cst.CSTNode, function: cst.FunctionDef | None, around: tuple[cst.For | cst.While, ...]
) -> Iterator[Loop]:
    for child in children(node):
        if type(child) is cst.SimpleStatementLine:
            continue
        if isinstance(child, cst.For | cst.While):
            yield Loop(child, function, around)
            yield from _loops(child, function, (*around, child))
        elif isinstance(child, cst.FunctionDef):
            yield from _loops(child, child, ())
        elif not isinstance(child, cst.BaseExpression | cst.BaseSmallStatement):
            yield from _loops(child, function, around)


def inside(node: cst.CSTNode, *, nested_loops: bool = True) -> Iterator[cst.CSTNode]:
    """Everything below a node in the order of the text, without the bodies of functions, lambdas and classes."""
    waiting = [*children(node)][::-1]
    while waiting:
        current = waiting.pop()
        if type(current) in _SCOPES:
            continue
        yield current
        if nested_loops or type(current) not in _LOOPS:
            waiting.extend([*children(current)][::-1])


def text(document: PythonDocument, node: cst.CSTNode) -> str:
    assert document.module is not None
    return document.module.code_for_node(node)


def place(document: PythonDocument, node: cst.CSTNode) -> Place:
    return Place(document, document.span(node))


def name_of(node: cst.CSTNode) -> str | None:
    """The source text of a name or a chain of names; None for anything else."""
    if not isinstance(node, cst.Name | cst.Attribute):
        return None
    found = dotted(node)
    return None if "()" in found else found


def around(document: PythonDocument, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What a node stands in, the innermost first, the module last."""
    current = document.parent(node)
    while current is not None:
        yield current
        current = document.parent(current)


def without_gradients(document: PythonDocument, node: cst.CSTNode) -> bool:
    """Whether a node stands under ``torch.no_grad()`` or its like: a ``with``, or a decorator around it."""
    for each in around(document, node):
        parts: Sequence[cst.CSTNode] = each.items if isinstance(each, cst.With) else ()
        if isinstance(each, cst.FunctionDef | cst.ClassDef):
            parts = each.decorators
        if any(_NO_GRAD.search(text(document, part)) for part in parts):
            return True
    return False


@kept
def assignments(node: cst.CSTNode) -> Iterator[tuple[str, cst.BaseExpression | None, cst.CSTNode]]:
    """Names that are bound below a node, each with its value (None where it is a part of one) and the statement."""
    for found in inside(node):
        if type(found) not in _BINDINGS:
            continue
        match found:
            case cst.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _bound(target.target, value, found)
            case cst.AnnAssign(target=target, value=value) if value is not None:
                yield from _bound(target, value, found)
            case cst.For(target=target):
                yield from _bound(target, None, found)
            case cst.NamedExpr(target=target, value=value):
                yield from _bound(target, value, found)


def _bound(
    target: cst.BaseExpression, value: cst.BaseExpression | None, statement: cst.CSTNode
) -> Iterator[tuple[str, cst.BaseExpression | None, cst.CSTNode]]:
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _bound(element.value, None, statement)
    elif (name := name_of(target)) is not None:
        yield name, value, statement


@kept
def backwards(node: cst.CSTNode) -> Iterator[tuple[cst.Call, str]]:
    """The calls of ``backward`` below a node with each name that gradients flow back from."""
    for found in inside(node):
        if type(found) is not cst.Call:
            continue
        match found:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="backward"))):
                yield from ((found, name) for name in sources(found))


def sources(backward: cst.Call) -> Iterator[str]:
    """The names that gradients flow back from in a call of ``backward``: its argument's, or its receiver's."""
    assert isinstance(backward.func, cst.Attribute)
    for source in (backward.func.value, *(argument.value for argument in backward.args[:1])):
        yield from names(source)


def names(expression: cst.BaseExpression) -> Iterator[str]:
    """Every name in an expression, in the order of the text."""
    for part in (expression, *inside(expression)):
        if isinstance(part, cst.Name):
            yield part.value


def summed(expression: cst.BaseExpression) -> cst.Name | None:
    """The name that a bare sum or product is made of, together with plain numbers and names (``loss / steps``)."""
    if isinstance(expression, cst.Name):
        return expression
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, _ARITHMETIC):
        return summed(expression.left)
    return None


def line_of(document: PythonDocument, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
    """The line that a node stands on; None for one of a compound statement's own."""
    return next((each for each in (node, *around(document, node)) if isinstance(each, cst.SimpleStatementLine)), None)


def sibling_before(document: PythonDocument, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The statements of the block that a node's line stands in, up to that line; the nearest one last."""
    line = line_of(document, node)
    block = document.parent(line) if line is not None else None
    statements = list(getattr(block, "body", ()))
    index = next((i for i, statement in enumerate(statements) if statement is line), 0)
    return statements[:index]


def guarded_step(loop: Loop, engine: str) -> tuple[cst.BaseExpression, cst.Call, cst.Call] | None:
    """An ``if … % steps`` around the one step of a DeepSpeed engine, that step, and a backward that happens every
    time: the loop counts what it accumulates, as the engine does itself."""
    guarded: dict[int, tuple[cst.BaseExpression, cst.Call]] = {}
    backward: cst.Call | None = None
    steps = 0
    for node in inside(loop.node.body, nested_loops=False):
        if isinstance(node, cst.If) and _counts(node.test):
            for call in inside(node.body):
                if isinstance(call, cst.Call) and name_of(call.func) == f"{engine}.step":
                    guarded[id(call)] = (node.test, call)
        if isinstance(node, cst.Call) and name_of(node.func) == f"{engine}.backward":
            backward = node
        steps += isinstance(node, cst.Call) and name_of(node.func) == f"{engine}.step"
    if backward is None or len(guarded) != 1 or steps != 1:
        return None
    (test, step) = next(iter(guarded.values()))
    return test, step, backward


def _counts(test: cst.BaseExpression) -> bool:
    parts = (test, *inside(test))
    return any(isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Modulo) for part in parts)
