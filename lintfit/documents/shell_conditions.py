"""Which branch of an ``if`` runs, as far as its tests compare known words."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from lintfit.documents.model import Span
from lintfit.documents.shell_expansion import expand, words
from lintfit.documents.shell_tokens import tokens
from lintfit.documents.shell_words import Scope, is_argument, text_of

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
_ERROR = re.compile(r"(?:exit|return)\s+-?[0-9]*[1-9][0-9]*")
_OF_A_FUNCTION = re.compile(r"exit\s+-?[0-9]*[1-9][0-9]*")
"""The same in a function that is called, where ``return`` ends that alone."""
_ARGUMENTS = re.compile(r"\$(?:[1-9@#*]|\{[1-9@#*])|\bgetopts\b")
"""A reference to the script's own arguments."""


def clauses(node: tree_sitter.Node) -> list[tree_sitter.Node]:
    """The ``elif`` and ``else`` of an ``if``."""
    return [child for child in node.named_children if child.type in ("elif_clause", "else_clause")]


def taken(
    node: tree_sitter.Node, source: Source, scope: Scope, functions: Mapping[str, tree_sitter.Node]
) -> tree_sitter.Node | Literal["none"] | None:
    """The statement or clause whose body an ``if`` runs, "none" where it runs none; None where nobody can tell.

    A test in a loop is not decided: what it asks for may change from one round to the next. A branch that ends the
    script with an error is not taken: the run that is meant goes on.
    """
    above = node.parent
    while above is not None:
        if above.type in LOOPS:
            return None
        above = above.parent
    open_to: list[tree_sitter.Node | Literal["none"]] = []
    for clause in (node, *clauses(node)):
        runs = clause.type == "else_clause" or _holds(clause, source, scope)
        ends = fails(body_of(clause), source, functions)
        if runs is not False and not ends:
            open_to.append(clause)
        if runs and (not ends or (clause.type == "else_clause" and open_to)):
            break
    else:
        open_to.append("none")
    return open_to[0] if len(open_to) == 1 else None


_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")


def tested(node: tree_sitter.Node, source: Source) -> set[str]:
    """The variables that the tests of an ``if`` and of its ``elif`` ask about."""
    asking = (clause.named_children[0] for clause in (node, *clauses(node)) if clause.type != "else_clause")
    return {name for test in asking for name in _VARIABLE.findall(source.of(test))}


def body_of(clause: tree_sitter.Node) -> list[tree_sitter.Node]:
    """The statements of an ``if``, ``elif`` or ``else`` without those of the other clauses."""
    found = [child for child in clause.named_children if child.type not in ("elif_clause", "else_clause", "comment")]
    return found if clause.type == "else_clause" else found[1:]


_DEEP = 4
"""Functions that call one another which are followed to an ``exit``."""


def fails(
    body: Sequence[tree_sitter.Node],
    source: Source,
    functions: Mapping[str, tree_sitter.Node],
    how: re.Pattern[str] = _ERROR,
    depth: int = 0,
) -> bool:
    """Whether the last of some statements ends the script with an error, or as a pattern of ``how`` says; a function
    that does counts as well."""
    last = body[-1] if body else None
    if last is None or depth > _DEEP:
        return False
    if last.type == "compound_statement":
        return fails(last.named_children, source, functions, how, depth + 1)
    if last.type == "redirected_statement":
        return fails(last.named_children[:1], source, functions, how, depth + 1)
    if last.type != "command":
        return False
    text = source.of(last)
    function = functions.get(text.split(None, 1)[0]) if text.strip() else None
    if function is not None:
        ends = [child for child in function.named_children if child.type != "comment"]
        return fails(ends, source, functions, _OF_A_FUNCTION if how is _ERROR else how, depth + 1)
    return how.fullmatch(text) is not None


def _holds(clause: tree_sitter.Node, source: Source, scope: Scope) -> bool | None:
    """Whether the one test of an ``if`` or ``elif`` is true."""
    first = clause.named_children[0] if clause.named_children else None
    return holds(first, source, scope) if first is not None else None


def holds(node: tree_sitter.Node, source: Source, scope: Scope, bare: bool = False, depth: int = 0) -> bool | None:
    """Whether a condition is true: tests, what joins and what negates them; None where nobody can tell.

    ``bare`` says that the script is started without arguments, so that ``$#`` is 0.
    """
    children = node.named_children
    if depth > _DEEPEST:
        return None
    if node.type == "test_command":
        match = _TEST.fullmatch(source.of(node))
        return _tested(match["test"], match.start("test"), node, source, scope, bare) if match is not None else None
    if node.type == "negated_command" and children:
        return _negated(holds(children[0], source, scope, bare, depth + 1))
    if node.type == "list" and len(children) == 2:
        sides = [holds(child, source, scope, bare, depth + 1) for child in children]
        return _all(sides) if any(child.type == "&&" for child in node.children) else _any(sides)
    if node.type == "command":
        name, _, rest = source.of(node).partition(" ")
        if name == "test":
            return _tested(rest, len(name) + 1, node, source, scope, bare)
        return True if name in PRINTS else None
    count = _COUNT.fullmatch(source.of(node)) if node.type == "compound_statement" and bare else None
    return test(("0", _SIGNS[count["sign"]], count["number"])) if count is not None else None


_DEEPEST = 50
"""Conditions within one another that are followed."""
PRINTS = frozenset(("echo", "printf", "cat", ":", "true"))
"""Commands that show something, and go well."""
_COUNT = re.compile(r"\(\(\s*(?:\$#|\$\{#\})\s*(?P<sign>==|!=|<=?|>=?)\s*(?P<number>[0-9]{1,9})\s*\)\)")
_SIGNS = {"==": "-eq", "!=": "-ne", "<": "-lt", "<=": "-le", ">": "-gt", ">=": "-ge"}
_NUMBER_OF_ARGUMENTS = ("$#", "${#}")
_OR, _AND = frozenset(("||", "-o")), frozenset(("&&", "-a"))


def _all(values: Sequence[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _any(values: Sequence[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _tested(text: str, at: int, node: tree_sitter.Node, source: Source, scope: Scope, bare: bool) -> bool | None:
    """Whether the words of a test at a place of a node say something true; ``-o`` and ``||`` part them first."""
    start = source.span(node).start + at
    inner = Span(start, start + len(text))
    if source.of(node).startswith("[["):
        found = [_unsplit(source.text, token, scope) for token in tokens(source.text, inner)]
    else:
        found = [(word.text, word.value) for word, _ in words(source.text, inner, scope)]
    around = _around(node, source)
    parts = [[_of_words(words, scope, bare, around) for words in _parted(side, _AND)] for side in _parted(found, _OR)]
    return _any([_all(part) for part in parts])


def _around(node: tree_sitter.Node, source: Source) -> str:
    """What stands in the ``if``, or is joined by ``&&`` and ``||``, around a test; nothing where that is longer than
    anybody writes it."""
    outer = node
    while outer.type != "if_statement" and outer.parent is not None and outer.parent.type in _HOLD_TESTS:
        outer = outer.parent
    whole, inner = source.span(outer), source.span(node)
    if whole.end - whole.start > _MOST_AROUND:
        return ""
    return source.text[whole.start : inner.start] + source.text[inner.end : whole.end]


_MOST_AROUND = 20_000
"""Characters around a test that are searched for what they do with its variable."""
_HOLD_TESTS = frozenset(("if_statement", "elif_clause", "list", "negated_command"))


_Words = Sequence[tuple[str, str | None]]
"""Words of a test: each with its text, and its value where that is known."""


def _parted(found: _Words, by: frozenset[str]) -> list[list[tuple[str, str | None]]]:
    parts: list[list[tuple[str, str | None]]] = [[]]
    for word in found:
        if word[1] in by:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _of_words(found: _Words, scope: Scope, bare: bool, around: str) -> bool | None:
    values = [value for _, value in found]
    if scope.positional is None and _asks_for_nothing(values):
        # An argument that is not given is empty, as it is for ${1:-default}; so is what only a cluster sets.
        values = [
            "" if value is None and (_is_left_out(text) or _has_default(text, scope, around)) else value
            for text, value in found
        ]
    if scope.positional is None and bare:
        pairs = zip(found, values, strict=True)
        values = ["0" if text in _NUMBER_OF_ARGUMENTS else value for (text, _), value in pairs]
    return test(values)


def _unsplit(text: str, token: Span, scope: Scope) -> tuple[str, str | None]:
    """A word of ``[[ … ]]``, which the shell does not split."""
    parts = [part for parts in expand(text, token, scope) for part in parts]
    return text_of(parts), text_of(parts) if all(part.known for part in parts) else None


_OF_A_CLUSTER = re.compile(r"\$\{?(?:MASTER_(?:ADDR|PORT)|WORLD_SIZE|NNODES|NODE_RANK|RANK)\}?")
"""Variables that what starts a script on several machines sets; nobody else does."""


def _is_left_out(word: str) -> bool:
    """Whether a word is what a script is not given where somebody starts it by hand, with no arguments."""
    return is_argument(word) or _OF_A_CLUSTER.fullmatch(word) is not None


_PLAIN_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_OF_SURROUNDINGS = re.compile(r"HOME|USER|(?:SLURM|PBS|LSB|CONDA|VIRTUAL)_\w+")
"""Variables that a login, a batch system or an environment sets."""


def _has_default(word: str, scope: Scope, around: str) -> bool:
    """Whether a word is a variable that nothing above sets and that what is tested sets or uses: the long form of
    ``${name:-default}``, whose variable counts as unset."""
    variable = _PLAIN_VARIABLE.fullmatch(word)
    name = (variable[1] or variable[2]) if variable is not None else ""
    if not name or name in scope.variables or _OF_SURROUNDINGS.fullmatch(name):
        return False
    return re.search(rf"(?<![\w-]){name}=|\$\{{?{name}\b", around) is not None


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
    negated = next((index for index, word in enumerate(known[:-1]) if word != "!"), max(0, len(known) - 1))
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
