"""Which parameters a statement in a loop over ``named_parameters()`` is about, by what is asked of their names."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.sources.script.interpreter.state import Gradient


class Picked(NamedTuple):
    """Names with wildcards, and whether all others are meant."""

    names: tuple[str, ...]
    others: bool = False


class Switch(NamedTuple):
    """Parameters, and whether they need a gradient from here on."""

    picked: Picked
    on: bool


EVERY = Picked(("*",))


def switches(document: PythonDocument, gradient: Gradient) -> tuple[Switch, ...] | None:
    """What one statement of a loop does to which parameters; None where that is not statically known."""
    where = _where(document, gradient)
    if where is None:
        return None
    picked, name = where
    if gradient.value is not None:
        return (Switch(picked, gradient.value),)
    asked = _asked(_assigned(document, gradient.node), name)
    if asked is None or picked != EVERY:
        return None
    return (Switch(EVERY, asked.others), Switch(Picked(asked.names), not asked.others))


def _where(document: PythonDocument, gradient: Gradient) -> tuple[Picked, str | None] | None:
    """What the tests around a statement pick, and what the loop calls a parameter's name."""
    tests: list[tuple[cst.BaseExpression, bool]] = []
    below, node = gradient.node, document.parent(gradient.node)
    while node is not None and not isinstance(node, cst.For):
        if isinstance(node, cst.If):
            if isinstance(below, cst.If):
                return None
            tests.append((node.test, isinstance(below, cst.Else)))
        below, node = node, document.parent(node)
    if node is None:
        return None
    target = node.target
    first = target.elements[0].value if isinstance(target, cst.Tuple) and target.elements else None
    name = first.value if isinstance(first, cst.Name) else None
    if gradient.taken is True:
        return EVERY, name
    if len(tests) != 1 or gradient.source is None or gradient.source.taken is not True:
        return None
    test, otherwise = tests[0]
    asked = _asked(test, name)
    return None if asked is None else (Picked(asked.names, asked.others != otherwise), name)


def _assigned(document: PythonDocument, node: cst.CSTNode) -> cst.BaseExpression | None:
    """What is assigned to a target."""
    parent = document.parent(node)
    statement = document.parent(parent) if isinstance(parent, cst.AssignTarget) else None
    return statement.value if isinstance(statement, cst.Assign) else None


def _asked(test: cst.BaseExpression | None, name: str | None) -> Picked | None:
    """The names for which a test holds; None where it asks something else."""
    if name is None:
        return None
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            asked = _asked(inner, name)
            return None if asked is None else Picked(asked.names, not asked.others)
        case cst.BooleanOperation(operator=cst.Or()):
            both = _asked(test.left, name), _asked(test.right, name)
            if both[0] is None or both[1] is None or both[0].others or both[1].others:
                return None
            return Picked((*both[0].names, *both[1].names))
        case cst.BooleanOperation(operator=cst.And()):
            both = _asked(test.left, name), _asked(test.right, name)
            if both[0] is None or both[1] is None or not (both[0].others and both[1].others):
                return None
            return Picked((*both[0].names, *both[1].names), others=True)
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=cst.Name(value))]
        ):
            text = _text(left)
            if value == name and text is not None and isinstance(operator, cst.In | cst.NotIn):
                return Picked((f"*{text}*",), isinstance(operator, cst.NotIn))
        case cst.Call(func=cst.Attribute(value=cst.Name(value), attr=cst.Name(method)), args=[cst.Arg(given)]):
            return _begins_or_ends(method, given) if value == name else None
        case cst.Call(func=cst.Name("any"), args=[cst.Arg(cst.GeneratorExp() as each)]):
            return _any(each, name)
    return None


def _begins_or_ends(method: str, given: cst.BaseExpression) -> Picked | None:
    """``name.startswith("model.layers.")``."""
    texts = [_text(each) for each in _listed(given)]
    form = {"startswith": "{}*", "endswith": "*{}"}.get(method)
    if form is None or not texts or None in texts:
        return None
    return Picked(tuple(form.format(text) for text in texts))


def _any(each: cst.GeneratorExp, name: str) -> Picked | None:
    """``any(part in name for part in ["lm_head", "norm"])``."""
    parts = each.for_in.iter if isinstance(each.for_in.iter, cst.List | cst.Tuple | cst.Set) else None
    texts = [_text(part) for part in _listed(parts)] if parts and each.for_in.inner_for_in is None else []
    match each.elt, each.for_in.target:
        case (
            cst.Comparison(
                left=cst.Name(part), comparisons=[cst.ComparisonTarget(operator=cst.In(), comparator=cst.Name(value))]
            ),
            cst.Name(bound),
        ) if part == bound and value == name and texts and None not in texts and not each.for_in.ifs:
            return Picked(tuple(f"*{text}*" for text in texts))
    return None


def _listed(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The elements of a list, tuple or set that is written down, or the one value."""
    if isinstance(node, cst.List | cst.Tuple | cst.Set):
        return [element.value for element in node.elements]
    return [node]


def _text(node: cst.BaseExpression) -> str | None:
    """A string that a pattern can have in it as it is."""
    found = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return found if isinstance(found, str) and found and not set(found) & set("*[]!") else None
