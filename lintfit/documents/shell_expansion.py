"""Shell words: quote removal, expansion and splitting, with the place that every character came from.

The rules are those of the Bash manual (3.5 Shell Expansions) as far as they can be followed without running anything:
parameters, ``${name:-default}``, arrays, integer arithmetic and the script's own folder. Everything else is unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

from lintfit.documents import bounds
from lintfit.documents.model import Span
from lintfit.documents.numerals import natural
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.shell_arithmetic import calculate
from lintfit.documents.shell_tokens import BLANK, LETTERS, continues, each_token, skip, skip_dollar
from lintfit.documents.shell_words import MOST_WORDS, Fragment, Scope, Variable, Word, is_argument, part_of, text_of
from lintfit.frozen import frozen, replace

_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_EXPR = lazy_pattern(r"""expr(?:\s+(?:-?[0-9]+|\$\{?[A-Za-z_]\w*\}?|[-+/%]|\\[*()]|["'][*()]["']))+""")
"""``expr 16 / $processes`` with numbers and variables alone."""
_HOSTS = lazy_pattern(
    r"scontrol\s+show\s+hostnames?(?:\s+\"?\$\{?SLURM_(?:JOB_)?NODELIST\}?\"?)?(?P<count>\s*\|\s*wc\s+-l)?"
)
"""The nodes of the batch job, one a line (scontrol, "show hostnames"), or how many they are."""
_MAX_NODES = 256
"""Nodes of a job that are counted one by one."""
_SUBSTITUTED_FOLDER = lazy_pattern(
    r"(?:cd\s+(?:--\s+)?)?\"?(?:\$\(\s*)?(?:dirname\s+(?:--\s+)?)?(?:\$\(\s*(?:realpath|readlink\s+-f)\s+)?"
    r"\"?\$(?:0|\{0\}|\{BASH_SOURCE(?:\[0\])?\}|BASH_SOURCE)\"?\s*\)?\s*\)?(?P<up>(?:/[\w.-]+)*)/?\"?"
    r"(?:\s*(?:>\s*/dev/null\s+(?:2>&1\s*)?)?(?:&&|;)\s*pwd(?:\s+-P)?)?"
)


_REPLACEMENT = lazy_pattern(
    r"""/(?P<all>/?)(?P<old>(?:[\w,:;. +=-]|\\/|"/"|'/')+)(?:/(?P<new>(?:[\w,:;. +=-]|"-"|'-')*))?"""
)
"""``${name/old/new}`` and ``${name//old/new}`` of plain letters and quoted slashes, without patterns."""
_SEPARATE = lazy_pattern(r"\$(?:@|\{@(?::[1-9]\d*)?\}|\{[A-Za-z_]\w*\[@\]\})")
"""What comes to a word for each element, between double quotes: to none where there are none."""
_UNQUOTED = re.compile(r"""[^\\'"`$]+""")
_QUOTES = re.compile(r"[\\\"']")
_Lists = list[list[Fragment]]
"""What an expansion comes to: the pieces of one word, or of several."""


def words(text: str, span: Span, scope: Scope) -> list[tuple[Word, tuple[Fragment, ...]]]:
    """The words that a stretch of a command comes to, in order, each with its fragments.

    Of more words than are worked out there is one more than that: whoever uses them says so (``bounded``).
    """
    result: list[tuple[Word, tuple[Fragment, ...]]] = []
    for token in each_token(text, span):
        if len(result) > MOST_WORDS:
            break
        if LETTERS.fullmatch(text, token.start, token.end) and scope.steps.take(bounds.cost(token.end - token.start)):
            written = text[token.start : token.end]  # as most words are, and what they come to
            result.append((Word(written, written, token, (token,)), (Fragment(written, token),)))
            continue
        lists = split(expand(text, token, scope))
        result.extend(zip(as_words(lists, token), lists, strict=True))
    return result


def as_words(lists: Sequence[tuple[Fragment, ...]], token: Span) -> list[Word]:
    """The words that one token of a command comes to, each with the places where it alone is written."""
    users = Counter(span for fragments in lists for span in {*chain.from_iterable(part.through for part in fragments)})
    return [_word(fragments, token, users, alone=len(lists) == 1) for fragments in lists]


def _word(fragments: tuple[Fragment, ...], token: Span, users: Mapping[Span, int], alone: bool) -> Word:
    value = text_of(fragments) if all(fragment.known for fragment in fragments) else None
    places = [token] if alone else []
    level = 1
    # One level further in for as long as the whole word comes through one and the same reference.
    while len({fragment.through[-level:] for fragment in fragments}) == 1 and len(fragments[0].through) >= level:
        inside = [part.origin if len(part.through) == level else part.through[-level - 1] for part in fragments]
        spans = list(dict.fromkeys(span for span in inside if span is not None))
        if len(spans) < len({*inside}) or not all(a.end == b.start for a, b in pairwise(spans)):
            break
        if all(users[span] <= 1 for span in spans):
            places.append(Span(spans[0].start, spans[-1].end))
        level += 1
    return Word(text_of(fragments), value, token, tuple(places))


def expand(text: str, span: Span, scope: Scope, quoted: bool = False) -> _Lists:
    """Remove quotes and expand; more than one list only where ``"${array[@]}"`` or ``"$@"`` makes several words."""
    result: _Lists = [[]]
    offset, end = span.start, span.end
    if not scope.steps.take(bounds.cost(end - offset)):
        return [[Fragment(text[offset:end], span, known=False)]]
    while offset < end:
        character = text[offset]
        stop = min(skip_dollar(text, offset, end) if quoted and character != "\\" else skip(text, offset, end), end)
        if character == "\\":
            if not continues(text, offset):
                keep = quoted and text[offset + 1 : offset + 2] not in tuple('$`"\\')
                result[-1].append(Fragment(text[offset + (not keep) : stop], Span(offset + (not keep), stop), True))
        elif character == "'" and not quoted:
            result[-1].append(Fragment(text[offset + 1 : stop - 1], Span(offset + 1, stop - 1), True))
        elif character == '"' and not quoted:
            inner = expand(text, Span(offset + 1, max(offset + 1, stop - 1)), scope, quoted=True)
            if inner == [[]] and not _SEPARATE.fullmatch(text, offset + 1, stop - 1):
                inner = [[Fragment("", Span(offset + 1, offset + 1), True)]]
            _join(result, inner)
        elif character == "$" and not quoted and text[offset + 1 : offset + 2] in ("'", '"'):
            stop = offset + 1  # $'…' and $"…": the quotes themselves follow
        elif character in "$`":
            match = _PARAMETER.match(text, offset + 1) if character == "$" else None
            stop = match.end() if match else stop
            _join(result, _expanded(_Reference(text, Span(offset, stop), scope, quoted)))
        else:
            plain = _UNQUOTED.match(text, stop, end)
            stop = plain.end() if plain is not None else stop
            result[-1].append(Fragment(text[offset:stop], Span(offset, stop), quoted))
        offset = stop
    return result


def _join(result: _Lists, more: Sequence[Sequence[Fragment]]) -> None:
    for index, fragments in enumerate(more):
        if index:
            result.append([])
        result[-1].extend(fragments)


@frozen
class _Reference:
    """One expansion in a text, between double quotes or not, and what is set where it stands."""

    text: str
    span: Span
    scope: Scope
    quoted: bool

    def unknown(self) -> _Lists:
        written = self.text[self.span.start : self.span.end]
        return [[Fragment(written, self.span, self.quoted, (self.span,), known=False)]]

    def computed(self, value: str | int | None) -> _Lists:
        """A value that is written nowhere."""
        return self.unknown() if value is None else [[Fragment(str(value), None, self.quoted, (self.span,))]]

    def elements(self, elements: Sequence[Sequence[Fragment]], separate: bool = False) -> _Lists:
        """What it gives of the elements of a variable: one word, or as many as there are."""
        text = sum(len(part.text) for element in elements for part in element)
        if not self.scope.steps.take(sum(map(len, elements)) + bounds.cost(text)):
            return self.unknown()
        lists = [
            [replace(part, quoted=self.quoted, through=(*part.through, self.span)) for part in element]
            for element in elements
        ]
        if separate or len(lists) < 2:
            return lists or [[]]
        (blank,) = self.computed(" ")
        return [[part for index, parts in enumerate(lists) for part in ((*blank, *parts) if index else parts)]]

    def hosts(self, nodes: int) -> _Lists:
        """The names of a batch job's nodes, which nobody knows: as many words as there are."""
        if not 0 < nodes <= _MAX_NODES:
            return self.unknown()
        name = replace(self.unknown()[0][0], quoted=True)  # of one word
        (blank,) = self.computed(" ")
        return [[part for index in range(nodes) for part in ((*blank, name) if index else (name,))]]

    def parameter(self, name: str) -> _Lists:
        positional, variable = self.scope.positional, self.scope.variables.get(name)
        if positional is not None:
            if name in ("@", "*"):
                return self.elements(positional, separate=name == "@")
            if number := natural(name):
                return self.elements(positional[number - 1 : number])
            if name == "#":
                return self.computed(len(positional))
        if variable is None and name == "PWD":
            return self.computed(".")  # as $(pwd)
        return self.elements(variable.elements[:1]) if variable is not None else self.unknown()


def _expanded(reference: _Reference) -> _Lists:
    try:
        return _expansion(reference)
    except RecursionError:  # ${a:-${b:-…}}, deeper than anybody writes it
        return reference.unknown()


def _expansion(reference: _Reference) -> _Lists:
    source = reference.text[reference.span.start : reference.span.end]
    if source in ("$", "`"):
        return [[Fragment(source, reference.span, reference.quoted)]]
    if source.startswith("$(("):
        return reference.computed(_arithmetic(source, reference.scope))
    if source.startswith(("$(", "`")):
        command = (source[2:-1] if source.startswith("$(") else source[1:-1]).strip()
        if _EXPR.fullmatch(command):
            return reference.computed(_arithmetic(f"$(({_operators(command[4:])}))", reference.scope))
        if hosts := _HOSTS.fullmatch(command):
            nodes = natural(reference.scope.batch.get("SLURM_NNODES"))
            return reference.computed(nodes) if hosts["count"] else reference.hosts(nodes or 0)
        return reference.computed("." if command == "pwd" else _own_folder(command, reference.scope))
    return _braced(reference) if source.startswith("${") else reference.parameter(source[1:])


def _operators(words: str) -> str:
    """The words of ``expr`` as arithmetic has them, without what keeps the shell's hands off an operator."""
    return re.sub(r"""\\([*()])|["']([*()])["']""", lambda match: match[1] or match[2], words)


def _own_folder(command: str, scope: Scope) -> str | None:
    """The folder of the script, where that is what a command prints."""
    folder = _SUBSTITUTED_FOLDER.fullmatch(command) if "dirname" in command else None
    return scope.folder + folder["up"] if folder else None


def _count(variable: Variable) -> int | None:
    """How many elements an array has; None where one is unknown and unquoted, so that it may be several or none."""
    split = any(not part.known and not part.quoted for element in variable.elements for part in element)
    return None if split else len(variable.elements)


def _braced(reference: _Reference) -> _Lists:
    text, scope = reference.text, reference.scope
    start, end = reference.span.start + 2, reference.span.end - 1
    length = text.startswith("#", start) and end > start + 1
    match = _PARAMETER.match(text, start + length)
    if match is None:
        return reference.unknown()
    name, rest = match.group(), text[match.end() : end]
    subscript = re.match(r"\[([^\]]*)\]", rest)
    after = match.end() + (subscript.end() if subscript else 0)
    rest = text[after:end]
    variable = scope.variables.get(name)
    if length:
        counts = variable is not None and subscript is not None and subscript[1] in ("@", "*")
        if counts or variable is None:
            return reference.computed(_count(variable) if variable is not None else None)
        plain = subscript is None and not rest and variable.value is not None
        return reference.computed(len(variable.value or "") if plain else None)
    if subscript:
        return _subscript(reference, variable if not rest else None, subscript[1])
    if not rest:
        return reference.parameter(name)
    replaced = _REPLACEMENT.fullmatch(rest)
    if replaced is not None and variable is not None and variable.value is not None:
        count = -1 if replaced["all"] else 1
        old, new = (_QUOTES.sub("", part or "") for part in replaced.group("old", "new"))
        try:
            return reference.computed(bounds.replaced(variable.value, old, new, count))
        except bounds.TooLarge:
            return reference.unknown()
    if name in ("@", "*") and scope.positional is not None and (first := natural(rest[1:])) and rest[0] == ":":
        return reference.elements(scope.positional[first - 1 :], separate=name == "@")
    operator = re.match(r":?[-=+?]", rest)
    if operator is None:
        return reference.unknown()
    return _with_default(reference, name, operator.group(), Span(after + operator.end(), end))


def _subscript(reference: _Reference, variable: Variable | None, index: str) -> _Lists:
    if variable is not None and index in ("@", "*"):
        return reference.elements(variable.elements, separate=index == "@")
    number = natural(index)
    if variable is not None and number is not None and number < len(variable.elements):
        return reference.elements([variable.elements[number]])
    return reference.unknown()


def _with_default(reference: _Reference, name: str, operator: str, default: Span) -> _Lists:
    """``${name:-default}`` and its kin. A name that the script never sets counts as unset."""
    text, scope = reference.text, reference.scope
    current: _Lists | None = None
    if name in scope.variables or (name.isdigit() and scope.positional is not None):
        current = reference.parameter(name)
        known = all(part.known for parts in current for part in parts)
        came_to = text_of(part for parts in current for part in parts)
        # An argument that is not given is empty, as it is for ${1:-default}.
        absent = not known and scope.positional is None and is_argument(came_to)
        if operator.startswith(":") and ((known and not came_to) or absent):
            current = None
    if operator.endswith("+"):
        return [[]] if current is None else reference.elements(expand(text, default, scope), separate=True)
    if current is not None:
        return current
    if operator.endswith("?"):
        if name in scope.variables:  # the script ends here unless somebody gives it
            scope.variables[name] = scope.variables[name].unknown()
        return reference.unknown()
    parts = [tuple(item) for item in expand(text, default, scope)]
    if operator.endswith("="):
        scope.variables[name] = Variable(name, (parts[0],), default, default)
    return reference.elements(parts, separate=True)


_COPIED = re.compile(r"\$\{?(SLURM_[A-Z_]+)\}?")


def _arithmetic(source: str, scope: Scope) -> int | None:
    """What ``$((…))`` comes to."""

    def number(match: re.Match[str]) -> str:
        name = match.group()
        return scope.batch[name] if name in scope.batch else _integer(scope.variables.get(name), scope)

    def elements(match: re.Match[str]) -> str:
        variable = scope.variables.get(match[1])
        count = _count(variable) if variable is not None else None
        return "?" if count is None else str(count)

    inner = re.sub(r"\$\{#([A-Za-z_]\w*)\[[@*]\]\}", elements, source[3:-2])
    inner = re.sub(r"\$\{?([A-Za-z_]\w*)\}?", r"\1", inner)
    return calculate(_NAME.sub(number, inner), scope.steps)


def _integer(variable: Variable | None, scope: Scope) -> str:
    """A variable's number; the batch job's where it is a copy of one of its own (``N=$SLURM_NNODES``)."""
    value = variable.value if variable else None
    if value is None and variable is not None and len(variable.elements) == 1 and not variable.array:
        copied = _COPIED.fullmatch(text_of(variable.elements[0]))
        value = scope.batch.get(copied[1]) if copied else None
    return value if value is not None and re.fullmatch(r"-?[0-9]{1,18}", value) else "?"


def split(lists: _Lists) -> list[tuple[Fragment, ...]]:
    """Split unquoted expansions at blanks; what comes to nothing and bears no quotes is no word."""
    result: list[tuple[Fragment, ...]] = []
    for fragments in lists:
        current: list[Fragment] = []
        for fragment in fragments:
            if not fragment.through or fragment.quoted or not fragment.known:
                current.append(fragment)
                continue
            for piece in re.finditer(r"[ \t\r\n]+|\\?[^ \t\r\n]+", fragment.text):
                if piece.group()[0] in BLANK:
                    if current:
                        result.append(tuple(current))
                    current = []
                elif piece.group() != "\\":
                    current.append(part_of(fragment, piece.start(), piece.end()))
        if current:
            result.append(tuple(current))
    return result
