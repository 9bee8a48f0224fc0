"""The ways through a piece of code, of which one runs: what a call counts for, summed over the way that has most."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from lintfit.documents.python_blocks import FunctionBlock
from lintfit.documents.python_walk import children

Count = Callable[[cst.Call], int]

_APART = frozenset({cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.If, cst.IfExp, cst.IndentedBlock, FunctionBlock})
"""What is not summed over its children. Types are looked up: libcst's classes are abstract ones, of which isinstance
takes ten times as long to say no."""
_LEAVES = (cst.Return, cst.Raise, cst.Continue)


def most(node: cst.CSTNode, count: Count) -> int:
    """The sum of what calls count for, on the way through a piece of code that has most of it."""
    kind = type(node)
    if kind is cst.Name:
        return 0
    if kind in _APART:
        match node:
            case cst.If(test=test, body=body, orelse=orelse):
                return most(test, count) + max(most(body, count), most(orelse, count) if orelse else 0)
            case cst.IfExp(test=test, body=body, orelse=orelse):
                return most(test, count) + max(most(body, count), most(orelse, count))
            case cst.IndentedBlock(body=statements):
                return _block(statements, count)
        return 0  # what is defined here runs elsewhere
    own = count(node) if isinstance(node, cst.Call) else 0
    return own + sum([most(child, count) for child in children(node)])


def _block(statements: Sequence[cst.CSTNode], count: Count) -> int:
    """A block, of which the rest is another way where an ``if`` leaves it."""
    total = 0
    for index, statement in enumerate(statements):
        if isinstance(statement, cst.If) and statement.orelse is None and _leaves(statement.body):
            rest = _block(statements[index + 1 :], count)
            return total + most(statement.test, count) + max(most(statement.body, count), rest)
        total += most(statement, count)
    return total


def _leaves(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], _LEAVES)
