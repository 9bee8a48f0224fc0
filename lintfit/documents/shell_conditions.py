"""Which branch of an ``if`` runs, as far as its tests compare known words."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from lintfit.documents.model import Span
from lintfit.documents.shell_expansion import words
from lintfit.documents.shell_words import Scope, is_argument

if TYPE_CHECKING:
    import tree_sitter

    from lintfit.documents.shell_source import Source

_PLAIN = re.compile(r"[\w./:,=@%+-]*")
"""A word that means the same as a string and as a pattern."""
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}

LOOPS = frozenset(("while_statement", "for_statement", "c_style_for_statement"))
_TEST = re.compile(r"\[\[?\s++(?P<test>\S(?:.*\S)?)\s+\]\]?", re.DOTALL)
_ERROR = re.compile(r"exit\s+-?[0-9]*[1-9][0-9]*")
_ARGUMENTS = re.compile(r"\$(?:[1-9@#*]|\{[1-9@#*])|\bgetopts\b")
"""A reference to the script's own arguments."""


def clauses(node: tree_sitter.Node) -> list[tree_sitter.Node]:
    """The ``elif`` and ``else`` of an ``if``."""
    return [child for child in node.named_children if child.type in ("elif_clause", "else_clause")]


def taken(node: tree_sitter.Node, source: Source, scope: Scope) -> tree_sitter.Node | Literal["none"] | None:
    """The statement or clause whose body an ``if`` runs, "none" where it runs none; None where nobody can tell.

    A test in a loop is not decided: what it asks for may change from one round to the next. A branch that ends the
    script with an error is not taken where its test leaves a choice: the run that is meant goes on.
    """
    above = node.parent
    while above is not None:
        if above.type in LOOPS:
            return None
        above = above.parent
    open_to: list[tree_sitter.Node | Literal["none"]] = []
    for clause in (node, *clauses(node)):
        holds = clause.type == "else_clause" or _holds(clause, source, scope)
        if holds is not False and not (_fails(clause, source) and (holds is None or open_to)):
            open_to.append(clause)
        if holds:
            break
    else:
        open_to.append("none")
    return open_to[0] if len(open_to) == 1 else None


def _fails(clause: tree_sitter.Node, source: Source) -> bool:
    """Whether the last statement of an ``if``, ``elif`` or ``else`` is ``exit`` with an error."""
    body = [child for child in clause.named_children if child.type not in ("elif_clause", "else_clause", "comment")]
    return bool(body) and body[-1].type == "command" and _ERROR.fullmatch(source.of(body[-1])) is not None


def _holds(clause: tree_sitter.Node, source: Source, scope: Scope) -> bool | None:
    """Whether the one test of an ``if`` or ``elif`` is true."""
    first = clause.named_children[0] if clause.named_children else None
    if first is None or first.type != "test_command":
        return None
    match = _TEST.fullmatch(source.of(first))
    if match is None:
        return None
    start = source.span(first).start
    inner = Span(start + match.start("test"), start + match.end("test"))
    found = [word for word, _ in words(source.text, inner, scope)]
    values = [word.value for word in found]
    if scope.positional is None and _asks_for_nothing(values):
        # An argument that is not given is empty, as it is for ${1:-default}; so is what only a cluster sets.
        values = ["" if word.unknown and _is_left_out(word.text) else word.value for word in found]
    return test(values)


_OF_A_CLUSTER = re.compile(r"\$\{?(?:MASTER_(?:ADDR|PORT)|WORLD_SIZE|NNODES|NODE_RANK|RANK)\}?")
"""Variables that what starts a script on several machines sets; nobody else does."""


def _is_left_out(word: str) -> bool:
    """Whether a word is what a script is not given where somebody starts it by hand, with no arguments."""
    return is_argument(word) or _OF_A_CLUSTER.fullmatch(word) is not None


def _asks_for_nothing(words: Sequence[str | None]) -> bool:
    """Whether a test is for the empty word: ``A``, ``-z A``, ``-n A``, ``A = ""`` and the like."""
    bare = words[1:] if words[:1] == ["!"] else words
    return (
        len(bare) == 1
        or (len(bare) == 2 and bare[0] in ("-z", "-n"))
        or (len(bare) == 3 and bare[1] in ("=", "==", "!=") and "" in (bare[0], bare[2]))
    )


def reads_arguments(loop: tree_sitter.Node, source: Source, scope: Scope) -> bool:
    """Whether a loop goes through the script's own arguments.

    Without arguments it does nothing, so that what stands above it holds, as it does for ``${1:-default}``.
    """
    return scope.positional is None and _ARGUMENTS.search(source.text[slice(*_bounds(loop, source))]) is not None


def _bounds(loop: tree_sitter.Node, source: Source) -> tuple[int, int]:
    """Where a loop's condition stands, with the ``case`` that it may begin with."""
    span, body = source.span(loop), loop.child_by_field_name("body")
    first = body.named_children[0] if body is not None and body.named_children else None
    value = first.child_by_field_name("value") if first is not None and first.type == "case_statement" else None
    if value is not None:
        return span.start, source.span(value).end
    return span.start, source.span(body).start if body is not None else span.end


def test(words: Sequence[str | None]) -> bool | None:
    """Whether a test of these words is true; None where a word is not known or the test is of another kind.

    ``A``, ``A = B``, ``A == B``, ``A != B``, ``-z A``, ``-n A`` and the comparisons of integers (Bash manual, 6.4).
    """
    known = [word for word in words if word is not None]
    if len(known) != len(words):
        return None
    negated = next((index for index, word in enumerate(known) if word != "!"), len(known))
    if negated:
        inner = test(known[negated:])
        return None if inner is None else inner is (negated % 2 == 0)
    if len(known) == 1:
        return known[0] != ""
    if len(known) == 2 and known[0] in ("-z", "-n"):
        return (known[1] == "") is (known[0] == "-z")
    return _compared(*known) if len(known) == 3 else None


def _compared(left: str, sign: str, right: str) -> bool | None:
    if sign in _NUMBERS:
        numbers = _NUMBER.fullmatch(left) and _NUMBER.fullmatch(right)
        return _NUMBERS[sign](int(left), int(right)) if numbers else None
    if sign in ("=", "==", "!=") and _PLAIN.fullmatch(right):
        return (left == right) is (sign != "!=")
    return None
