"""Variables of a shell script: what an assignment sets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from lintfit.documents import bounds
from lintfit.documents.model import Span
from lintfit.documents.shell_expansion import expand, split, words
from lintfit.documents.shell_words import MOST_WORDS, Fragment, Scope, Variable
from lintfit.frozen import replace

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<subscript>\[[^\]]*\])?(?P<append>\+?)=")
_Item = TypeVar("_Item")


def bounded(items: Sequence[_Item], what: str, scope: Scope) -> list[_Item]:
    """The items that are followed; where there are more, the reading says so."""
    scope.steps.allows(len(items), MOST_WORDS, what)
    return [*items[:MOST_WORDS]]


def is_assignment(text: str, span: Span) -> bool:
    return _ASSIGNMENT.match(text, span.start, span.end) is not None


def assign(text: str, span: Span, scope: Scope, export: bool = False) -> None:
    """Set what the assignment at a place says; a variable that is exported stays so."""
    variable = variable_at(text, span, scope)
    if variable is not None:
        old = scope.variables.get(variable.name)
        scope.variables[variable.name] = replace(variable, exported=export or bool(old and old.exported))


def export(text: str, span: Span, scope: Scope) -> None:
    """Export the variable whose name stands at a place."""
    name = text[span.start : span.end]
    if name in scope.variables:
        scope.variables[name] = replace(scope.variables[name], exported=True)


def variable_at(text: str, span: Span, scope: Scope) -> Variable | None:
    """What the assignment at a place sets."""
    match = _ASSIGNMENT.match(text, span.start, span.end)
    if match is None:
        return None
    name, value_span = match["name"], Span(match.end(), span.end)
    old = scope.variables.get(name)
    kept = old.elements if old and match["append"] else ()
    if match["subscript"]:
        unknown = Fragment(text[span.start : span.end], span, known=False)
        return Variable(name, ((unknown,),), span, value_span)
    if text.startswith("(", value_span.start):
        inner = Span(value_span.start + 1, max(value_span.start + 1, value_span.end - 1))
        found = (*kept, *(fragments for _, fragments in words(text, inner, scope)))
        return Variable(name, tuple(bounded(found, "words of one array", scope)), span, value_span, array=True)
    parts = [part for parts in expand(text, value_span, scope) for part in parts]
    first = (*(kept[0] if kept else ()), *parts)
    small = sum(len(part.text) for part in first) <= bounds.MAX_TEXT or not (kept or _refers(first))
    if not small or not scope.steps.allows(len(first), MOST_WORDS, "pieces of one value"):
        first = (Fragment(f"${{{name}}}", value_span, known=False),)
    return Variable(name, (first, *kept[1:]), span, value_span)


def _refers(pieces: Sequence[Fragment]) -> bool:
    return any(part.through for part in pieces)


def set_loop_variable(text: str, name: Span, values: Sequence[Span], scope: Scope) -> None:
    """What a ``for`` goes through is known where it is one word."""
    label = text[name.start : name.end]
    elements: tuple[tuple[Fragment, ...], ...] = ((Fragment(f"${label}", name, known=False),),)
    if len(values) == 1:
        found = split(expand(text, values[0], scope))
        elements = tuple(found) if len(found) == 1 else elements
    scope.variables[label] = Variable(label, elements, name, values[0] if values else name)
