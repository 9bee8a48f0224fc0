"""The ways through a piece of code, of which one runs: what a call counts for, summed over that with most or fewest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from lintfit.documents.python_blocks import FunctionBlock
from lintfit.documents.python_walk import children, walk

Count = Callable[[cst.Call], int]

_APART = frozenset({cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.If, cst.IfExp, cst.IndentedBlock, FunctionBlock})
"""What is not summed over its children. Types are looked up: libcst's classes are abstract ones, of which isinstance
takes ten times as long to say no."""
_LEAVES = (cst.Return, cst.Raise, cst.Continue)


def most(node: cst.CSTNode, count: Count) -> int:
    """The sum of what calls count for, on the way through a piece of code that has most of it."""
    return _sum(node, count, max)


def fewest(node: cst.CSTNode, count: Count) -> int:
    """The same on the way that has least of it, but for those on which nothing is done: a check that raises, or that
    gives back what is at hand."""
    return _sum(node, count, min)


Pick = Callable[[int, int], int]


def _sum(node: cst.CSTNode, count: Count, pick: Pick) -> int:
    kind = type(node)
    if kind is cst.Name:
        return 0
    if kind in _APART:
        match node:
            case cst.If(test=test, body=body, orelse=orelse):
                rest = _sum(orelse, count, pick) if orelse else 0
                if isinstance(orelse, cst.Else) and _does_nothing(orelse.body):
                    rest = _sum(body, count, pick)
                return _sum(test, count, pick) + _either(body, count, rest, pick)
            case cst.IfExp(test=test, body=body, orelse=orelse):
                return _sum(test, count, pick) + pick(_sum(body, count, pick), _sum(orelse, count, pick))
            case cst.IndentedBlock(body=statements):
                return _block(statements, count, pick)
        return 0  # what is defined here runs elsewhere
    own = count(node) if isinstance(node, cst.Call) else 0
    return own + sum([_sum(child, count, pick) for child in children(node)])


def _block(statements: Sequence[cst.CSTNode], count: Count, pick: Pick) -> int:
    """A block, of which the rest is another way where an ``if`` leaves it."""
    total = 0
    for index, statement in enumerate(statements):
        if isinstance(statement, cst.If) and statement.orelse is None and _leaves(statement.body):
            rest = _block(statements[index + 1 :], count, pick)
            return total + _sum(statement.test, count, pick) + _either(statement.body, count, rest, pick)
        total += _sum(statement, count, pick)
    return total


def _either(body: cst.BaseSuite, count: Count, rest: int, pick: Pick) -> int:
    """The way through a body, or ``rest``, which is that around it."""
    return rest if _does_nothing(body) else pick(_sum(body, count, pick), rest)


def _does_nothing(body: cst.BaseSuite) -> bool:
    """Whether a body leaves at once."""
    only = body.body[0] if len(body.body) == 1 else None
    small = only.body[0] if isinstance(only, cst.SimpleStatementLine) else only
    if isinstance(small, cst.Return):
        return not any(isinstance(node, cst.Call) for node in walk(small))
    return isinstance(small, cst.Raise)


def _leaves(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], _LEAVES)
