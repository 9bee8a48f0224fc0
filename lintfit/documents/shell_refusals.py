"""Where a script refuses to go on as it stands: ``[ -z "$MODEL" ] && usage``.

Somebody gives such a script what it asks for, so that the variables of the test are not known behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from lintfit.documents.shell_conditions import LOOPS, PRINTS, body_of, clauses, fails, holds
from lintfit.documents.shell_expansion import expand
from lintfit.documents.shell_words import Scope, Variable, text_of

if TYPE_CHECKING:
    import tree_sitter

    from lintfit.documents.shell_source import Source

_ENDS = re.compile(r"(?:exit|return)(?:\s+\S+)?")
_Functions = Mapping[str, "tree_sitter.Node"]


def refused(node: tree_sitter.Node, source: Source, scope: Scope, functions: _Functions) -> frozenset[str]:
    """The variables that an ``if``, a ``case`` or a list asks for where it certainly ends the script, as it is started
    without arguments; ``#`` and the like for the arguments themselves."""
    if node.type not in ("if_statement", "case_statement", "list") or _is_in_loop(node):
        return frozenset()
    ways = [(_refuses(body, source, functions), test, body) for test, body in _ways(node)]
    if not any(ends for ends, _, _ in ways):
        return frozenset()
    asked: list[tree_sitter.Node] = []
    for ends, test, body in ways:
        asked += [test] if test is not None else []
        runs = _runs(node, test, body, source, scope)
        if runs and ends:
            return frozenset(_names(asked, source))
        if runs or (runs is None and not ends):
            break
    return frozenset()


_Way = tuple["tree_sitter.Node | None", "list[tree_sitter.Node]"]
"""What is asked for in front of a branch, and its statements."""


def _ways(node: tree_sitter.Node) -> Iterator[_Way]:
    children = node.named_children
    if node.type == "if_statement":
        for clause in (node, *clauses(node)):
            test = clause.named_children[0] if clause.named_children and clause.type != "else_clause" else None
            yield test, body_of(clause)
    elif node.type == "list" and len(children) == 2:
        yield children[0], children[1:]
    elif node.type == "case_statement":
        for item in (child for child in children if child.type == "case_item"):
            yield node.child_by_field_name("value"), [child for child in item.named_children if child.type != "comment"]


def _runs(
    node: tree_sitter.Node,
    test: tree_sitter.Node | None,
    body: Sequence[tree_sitter.Node],
    source: Source,
    scope: Scope,
) -> bool | None:
    """Whether a branch runs where those in front of it do not; None where nobody can tell."""
    if test is None:
        return True
    if node.type == "case_statement":
        parts = [part for parts in expand(source.text, source.span(test), scope) for part in parts]
        value = text_of(parts) if all(part.known for part in parts) else None
        item = body[0].parent if body else None
        return _matches(value, [source.of(one) for one in item.children_by_field_name("value")] if item else [])
    runs = holds(test, source, scope, bare=True)
    otherwise = node.type == "list" and any(child.type == "||" for child in node.children)
    return not runs if otherwise and runs is not None else runs


def _matches(value: str | None, patterns: Sequence[str]) -> bool | None:
    """Whether one of a ``case``'s patterns is that of a value; ``*`` is that of all."""
    if "*" in patterns:
        return True
    if value is None or any("$" in pattern for pattern in patterns):
        return None
    return any(fnmatchcase(value, pattern.strip("\"'")) for pattern in patterns)


def _refuses(body: Sequence[tree_sitter.Node], source: Source, functions: _Functions) -> bool:
    """Whether statements end the script with an error, or do nothing but say something and end it."""
    if fails(body, source, functions):
        return True
    return fails(body, source, functions, _ENDS) and all(_prints(each, source, functions) for each in body[:-1])


def _prints(node: tree_sitter.Node, source: Source, functions: _Functions) -> bool:
    if node.type == "redirected_statement":
        return all(_prints(child, source, functions) for child in node.named_children[:1])
    name = source.of(node).split(None, 1)[0] if node.type == "command" else ""
    return name in PRINTS or name in functions


def _is_in_loop(node: tree_sitter.Node) -> bool:
    above = node.parent
    while above is not None and above.type not in LOOPS:
        above = above.parent
    return above is not None


def _names(nodes: Iterable[tree_sitter.Node], source: Source) -> Iterator[str]:
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node.type in ("variable_name", "special_variable_name"):
            yield source.of(node)
        pending += node.named_children


def unknown(variables: Mapping[str, Variable], names: Iterable[str]) -> dict[str, Variable]:
    """The variables of these names with values that nobody knows."""
    return {name: variables[name].unknown() for name in names if name in variables}


def to_be_given(before: Mapping[str, Variable], ends: Iterable[Mapping[str, Variable]]) -> list[str]:
    """The empty variables that a loop over the script's arguments may set."""
    empty = [name for name, variable in before.items() if variable.value == "" and not variable.array]
    return [name for name in empty if any(end.get(name) is not before[name] for end in ends)]
