"""Shell words: quote removal, expansion and splitting, with the place that every character came from.

The rules are those of the Bash manual (3.5 Shell Expansions) as far as they can be followed without running anything:
parameters, ``${name:-default}``, arrays, integer arithmetic and the script's own folder. Everything else is unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from lintfit.documents.model import Span
from lintfit.documents.numerals import natural
from lintfit.documents.shell_arithmetic import calculate
from lintfit.documents.steps import Steps
from lintfit.frozen import frozen, replace

MAX_STEPS = 250_000
"""Statements and pieces of values that are followed in one shell script, with what it sources."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_BLANK = " \t\n\r"
_SUBSTITUTED_FOLDER = re.compile(
    r"(?:cd\s+(?:--\s+)?)?\"?(?:\$\(\s*)?(?:dirname\s+(?:--\s+)?)?(?:\$\(\s*(?:realpath|readlink\s+-f)\s+)?"
    r"\"?\$(?:0|\{0\}|\{BASH_SOURCE(?:\[0\])?\}|BASH_SOURCE)\"?\s*\)?\s*\)?(?P<up>(?:/\.\.)*)/?\"?"
    r"(?:\s+(?:>\s*/dev/null\s+(?:2>&1\s+)?)?&&\s+pwd(?:\s+-P)?)?"
)


_REPLACEMENT = re.compile(r"/(?P<all>/?)(?P<old>[\w,:;. +=-]+)(?:/(?P<new>[\w,:;. +=-]*))?")
"""``${name/old/new}`` and ``${name//old/new}`` of plain letters, without patterns."""
_ARGUMENT = re.compile(r"\$(?:[1-9]|\{[1-9][0-9]*\})")


@frozen
class Fragment:
    """A piece of a value. ``origin`` is where the text stands, character by character; None where it is computed.

    ``through`` are the references that it came by (``$ARGS`` …), the innermost first; it is empty for what is written
    in the word itself. ``quoted`` pieces are not split. ``known`` is False for what only running the script would
    tell; ``text`` is then the source as written.
    """

    text: str
    origin: Span | None
    quoted: bool = False
    through: tuple[Span, ...] = ()
    known: bool = True


@frozen
class Word:
    """One word of a command after expansion.

    ``value`` is None where a part cannot be known (``unknown``); ``text`` then keeps the unknown parts as written.
    ``at`` is the token in the command. ``places`` are the stretches of source that come to exactly this word: the token
    itself (unless it makes several words), then its text inside the assignment (or default) that the token's variable
    has its value from, and so on inwards. ``span`` is the innermost, the one to edit; ``editable`` is False where
    there is none, and ``span`` is then the token that holds it.
    """

    text: str
    value: str | None
    at: Span
    places: tuple[Span, ...]

    @property
    def span(self) -> Span:
        return self.places[-1] if self.places else self.at

    @property
    def editable(self) -> bool:
        return bool(self.places)

    @property
    def unknown(self) -> bool:
        return self.value is None

    @property
    def moved(self) -> bool:
        """Whether the word is written elsewhere than in the command itself."""
        return not (self.at.start <= self.span.start and self.span.end <= self.at.end)


@frozen
class Variable:
    """A shell variable: the elements of its value (one, unless it is an array) and where it was last set.

    ``span`` is the last assignment with its name, ``value_span`` what stands behind its ``=``.
    """

    name: str
    elements: tuple[tuple[Fragment, ...], ...]
    span: Span
    value_span: Span
    exported: bool = False
    array: bool = False

    @property
    def value(self) -> str | None:
        """The value as far as it can be known (an array's first element, as ``$name`` would give)."""
        first = self.elements[0] if self.elements else ()
        return text_of(first) if all(fragment.known for fragment in first) else None


@dataclass(slots=True)
class Scope:
    """What is set at one point of the script."""

    variables: dict[str, Variable] = field(default_factory=dict)
    positional: Sequence[tuple[Fragment, ...]] | None = None
    """The arguments of the function that is being followed; None at the top, where nobody knows them."""
    folder: str = "."
    """The script's own folder."""
    assign: Callable[[str, tuple[Fragment, ...], Span], None] | None = None
    """Called for ``${name:=default}``."""
    batch: Mapping[str, str] = field(default_factory=dict)
    """Numbers that Slurm sets from the job's own options; arithmetic may use them."""
    steps: Steps = field(default_factory=lambda: Steps(MAX_STEPS, "steps of a shell script"))
    """What is left of the reading: a statement takes one, and so does every piece of a value."""

    def exported(self) -> Mapping[str, Variable]:
        return {name: variable for name, variable in self.variables.items() if variable.exported}


def is_argument(text: str) -> bool:
    """Whether a text is a reference to one of the script's own arguments and nothing else."""
    return _ARGUMENT.fullmatch(text) is not None


def text_of(fragments: Iterable[Fragment]) -> str:
    return "".join(fragment.text for fragment in fragments)


def words(text: str, span: Span, scope: Scope) -> list[tuple[Word, tuple[Fragment, ...]]]:
    """The words that a stretch of a command comes to, in order, each with its fragments."""
    result: list[tuple[Word, tuple[Fragment, ...]]] = []
    for token in tokens(text, span):
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


def tokens(text: str, span: Span) -> list[Span]:
    """Cut a stretch of a command at its unquoted blanks."""
    found: list[Span] = []
    offset, start = span.start, -1
    while offset < span.end:
        character = text[offset]
        if _continues(text, offset):
            offset += 2
            continue
        if character in _BLANK:
            if start >= 0:
                found.append(_trimmed(text, start, offset))
                start = -1
            offset += 1
            continue
        if start < 0:
            if character == "#":
                break_at = text.find("\n", offset, span.end)
                offset = span.end if break_at < 0 else break_at
                continue
            start = offset
        offset = min(_skip(text, offset, span.end), span.end)
    if start >= 0:
        found.append(_trimmed(text, start, span.end))
    return found


def _trimmed(text: str, start: int, end: int) -> Span:
    """A token without the continuations behind it."""
    while end - 2 > start and _continues(text, end - 2):
        end -= 2
    return Span(start, end)


def _continues(text: str, offset: int) -> bool:
    return text.startswith("\\\n", offset)


_CLOSERS = {"(": ")", "{": "}"}


def _skip(text: str, offset: int, end: int) -> int:
    """Behind the character, quoted string or expansion that starts at ``offset``."""
    closers: list[str] = []
    while True:
        character, closer = text[offset], closers[-1] if closers else ""
        if character == "\\":
            offset += 2
        elif character == closer:
            closers.pop()
            offset += 1
        elif character == "`" or (character == "'" and closer != '"'):
            close = text.find(character, offset + 1, end)
            offset = end if close < 0 else close + 1
        elif character == '"':
            closers.append('"')
            offset += 1
        elif text.startswith(("$(", "${"), offset):
            closers.append(_CLOSERS[text[offset + 1]])
            offset += 2
        else:
            if _CLOSERS.get(character) == closer:
                closers.append(closer)
            offset += 1
        if not closers or offset >= end:
            return offset


def _skip_dollar(text: str, offset: int, end: int) -> int:
    """The same between double quotes, where single ones and these are characters like any other."""
    return _skip(text, offset, end) if text[offset] in "$`" else offset + 1


def expand(text: str, span: Span, scope: Scope, quoted: bool = False) -> list[list[Fragment]]:
    """Remove quotes and expand; more than one list only where ``"${array[@]}"`` or ``"$@"`` makes several words."""
    result: list[list[Fragment]] = [[]]
    offset, end = span.start, span.end
    while offset < end:
        character = text[offset]
        stop = min(_skip_dollar(text, offset, end) if quoted and character != "\\" else _skip(text, offset, end), end)
        if character == "\\":
            if not _continues(text, offset):
                keep = quoted and text[offset + 1 : offset + 2] not in tuple('$`"\\')
                result[-1].append(Fragment(text[offset + (not keep) : stop], Span(offset + (not keep), stop), True))
        elif character == "'" and not quoted:
            result[-1].append(Fragment(text[offset + 1 : stop - 1], Span(offset + 1, stop - 1), True))
        elif character == '"' and not quoted:
            inner = expand(text, Span(offset + 1, max(offset + 1, stop - 1)), scope, quoted=True)
            if inner == [[]]:
                inner = [[Fragment("", Span(offset + 1, offset + 1), True)]]
            _join(result, inner)
        elif character == "$" and not quoted and text[offset + 1 : offset + 2] in ("'", '"'):
            stop = offset + 1  # $'…' and $"…": the quotes themselves follow
        elif character in "$`":
            match = _PARAMETER.match(text, offset + 1) if character == "$" else None
            stop = match.end() if match else stop
            _join(result, _expansion(text, Span(offset, stop), scope, quoted))
        else:
            while stop < end and text[stop] not in "\\'\"`$":
                stop += 1
            result[-1].append(Fragment(text[offset:stop], Span(offset, stop), quoted))
        offset = stop
    return result


def _join(result: list[list[Fragment]], more: Sequence[Sequence[Fragment]]) -> None:
    for index, fragments in enumerate(more):
        if index:
            result.append([])
        result[-1].extend(fragments)


def _unknown(text: str, span: Span, quoted: bool) -> list[list[Fragment]]:
    return [[Fragment(text[span.start : span.end], span, quoted, (span,), known=False)]]


def _expansion(text: str, span: Span, scope: Scope, quoted: bool) -> list[list[Fragment]]:
    try:
        return _expanded(text, span, scope, quoted)
    except RecursionError:  # ${a:-${b:-…}}, deeper than anybody writes it
        return _unknown(text, span, quoted)


def _expanded(text: str, span: Span, scope: Scope, quoted: bool) -> list[list[Fragment]]:
    source = text[span.start : span.end]
    if source in ("$", "`"):
        return [[Fragment(source, span, quoted)]]
    if source.startswith("$(("):
        return _arithmetic(text, span, scope, quoted)
    if source.startswith(("$(", "`")):
        inner = source[2:-1] if source.startswith("$(") else source[1:-1]
        return _substitution(text, span, inner.strip(), scope, quoted)
    if source.startswith("${"):
        return _braced(text, span, scope, quoted)
    return _parameter(text, span, source[1:], scope, quoted)


def _substitution(text: str, span: Span, command: str, scope: Scope, quoted: bool) -> list[list[Fragment]]:
    if command == "pwd":
        return [[Fragment(".", None, quoted, (span,))]]
    folder = _SUBSTITUTED_FOLDER.fullmatch(command) if "dirname" in command else None
    if folder:
        return [[Fragment(scope.folder + folder["up"], None, quoted, (span,))]]
    return _unknown(text, span, quoted)


def _parameter(text: str, span: Span, name: str, scope: Scope, quoted: bool) -> list[list[Fragment]]:
    if name in ("@", "*") and scope.positional is not None:
        return _elements(text, scope.positional, span, scope, quoted, separate=name == "@")
    if (number := natural(name)) and scope.positional is not None:
        return _elements(text, scope.positional[number - 1 : number], span, scope, quoted, separate=False)
    if name == "#" and scope.positional is not None:
        return [[Fragment(str(len(scope.positional)), None, quoted, (span,))]]
    variable = scope.variables.get(name)
    if variable is None:
        return _unknown(text, span, quoted)
    return _elements(text, variable.elements[:1], span, scope, quoted, separate=False)


def _elements(
    text: str, elements: Sequence[Sequence[Fragment]], span: Span, scope: Scope, quoted: bool, separate: bool
) -> list[list[Fragment]]:
    """What a reference at ``span`` gives of the elements of a variable."""
    if not scope.steps.take(sum(map(len, elements))):
        return _unknown(text, span, quoted)
    lists = [[replace(part, quoted=quoted, through=(*part.through, span)) for part in element] for element in elements]
    if separate or len(lists) < 2:
        return lists or [[]]
    joined: list[Fragment] = []
    for index, parts in enumerate(lists):
        if index:
            joined.append(Fragment(" ", None, quoted, (span,)))
        joined.extend(parts)
    return [joined]


def _count(variable: Variable) -> int | None:
    """How many elements an array has; None where one is unknown and unquoted, so that it may be several or none."""
    split = any(not part.known and not part.quoted for element in variable.elements for part in element)
    return None if split else len(variable.elements)


def _braced(text: str, span: Span, scope: Scope, quoted: bool) -> list[list[Fragment]]:
    start, end = span.start + 2, span.end - 1
    length = text.startswith("#", start) and end > start + 1
    match = _PARAMETER.match(text, start + length)
    if match is None:
        return _unknown(text, span, quoted)
    name, rest = match.group(), text[match.end() : end]
    subscript = re.match(r"\[([^\]]*)\]", rest)
    after = match.end() + (subscript.end() if subscript else 0)
    rest = text[after:end]
    variable = scope.variables.get(name)
    if length:
        count = _count(variable) if variable and subscript and subscript[1] in ("@", "*") else None
        return _unknown(text, span, quoted) if count is None else [[Fragment(str(count), None, quoted, (span,))]]
    if subscript:
        return _subscript(text, span, variable, subscript[1], rest, scope, quoted)
    operator = re.match(r":?[-=+?]", rest)
    if not rest:
        return _parameter(text, span, name, scope, quoted)
    replaced = _REPLACEMENT.fullmatch(rest)
    if replaced is not None and variable is not None and variable.value is not None:
        count = -1 if replaced["all"] else 1
        new = variable.value.replace(replaced["old"], replaced["new"], count)
        return [[Fragment(new, None, quoted, (span,))]]
    if operator is None:
        return _unknown(text, span, quoted)
    default = Span(after + operator.end(), end)
    return _with_default(text, span, name, operator.group(), default, scope, quoted)


def _subscript(
    text: str, span: Span, variable: Variable | None, index: str, rest: str, scope: Scope, quoted: bool
) -> list[list[Fragment]]:
    if variable is None or rest:
        return _unknown(text, span, quoted)
    if index in ("@", "*"):
        return _elements(text, variable.elements, span, scope, quoted, separate=index == "@")
    if (number := natural(index)) is not None and number < len(variable.elements):
        return _elements(text, [variable.elements[number]], span, scope, quoted, separate=False)
    return _unknown(text, span, quoted)


def _with_default(
    text: str, span: Span, name: str, operator: str, default: Span, scope: Scope, quoted: bool
) -> list[list[Fragment]]:
    """``${name:-default}`` and its kin. A name that the script never sets counts as unset."""
    current: list[list[Fragment]] | None = None
    if name in scope.variables or (name.isdigit() and scope.positional is not None):
        current = _parameter(text, span, name, scope, quoted)
        known = all(part.known for parts in current for part in parts)
        came_to = text_of(part for parts in current for part in parts)
        # An argument that is not given is empty, as it is for ${1:-default}.
        absent = not known and scope.positional is None and is_argument(came_to)
        if operator.startswith(":") and ((known and not came_to) or absent):
            current = None
    if operator.endswith("+"):
        if current is None:
            return [[]]
        return _elements(text, expand(text, default, scope), span, scope, quoted, separate=True)
    if current is not None:
        return current
    if operator.endswith("?"):
        return _unknown(text, span, quoted)
    parts = [tuple(item) for item in expand(text, default, scope)]
    if operator.endswith("=") and scope.assign is not None:
        scope.assign(name, parts[0], default)
    return _elements(text, parts, span, scope, quoted, separate=True)


def _arithmetic(text: str, span: Span, scope: Scope, quoted: bool) -> list[list[Fragment]]:
    inner = re.sub(r"\$\{?([A-Za-z_]\w*)\}?", r"\1", text[span.start + 3 : max(span.start + 3, span.end - 2)])

    def number(match: re.Match[str]) -> str:
        name = match.group()
        return scope.batch[name] if name in scope.batch else _integer(scope.variables.get(name))

    value = calculate(_NAME.sub(number, inner), scope.steps)
    return _unknown(text, span, quoted) if value is None else [[Fragment(str(value), None, quoted, (span,))]]


def _integer(variable: Variable | None) -> str:
    value = variable.value if variable else None
    return value if value is not None and re.fullmatch(r"-?[0-9]{1,18}", value) else "?"


def split(lists: list[list[Fragment]]) -> list[tuple[Fragment, ...]]:
    """Split unquoted expansions at blanks; what comes to nothing and bears no quotes is no word."""
    result: list[tuple[Fragment, ...]] = []
    for fragments in lists:
        current: list[Fragment] = []
        for fragment in fragments:
            if not fragment.through or fragment.quoted or not fragment.known:
                current.append(fragment)
                continue
            for piece in re.finditer(r"[ \t\r\n]+|\\?[^ \t\r\n]+", fragment.text):
                if piece.group()[0] in _BLANK:
                    if current:
                        result.append(tuple(current))
                    current = []
                elif piece.group() != "\\":
                    current.append(_part(fragment, piece.start(), piece.end()))
        if current:
            result.append(tuple(current))
    return result


def whole_substitutions(fragments: Sequence[Fragment]) -> list[Fragment]:
    """The fragments of a string that is run, with every ``$(…)`` of its text as one unknown that is not split."""
    text = "".join(part.text if part.known else "?" * len(part.text) for part in fragments)
    holes: list[Span] = []
    offset = text.find("$(")
    while offset >= 0:
        holes.append(Span(offset, min(_skip_dollar(text, offset, len(text)), len(text))))
        offset = text.find("$(", holes[-1].end)
    result: list[Fragment] = []
    start = 0
    for part in fragments:
        at, end = start, start + len(part.text)
        for hole in holes:
            low, high = max(at, hole.start), min(end, hole.end)
            if low < high:
                result += [_part(part, at - start, low - start)] if at < low else []
                result.append(replace(_part(part, low - start, high - start), known=False))
                at = high
        result += [_part(part, at - start, end - start)] if at < end or not part.text else []
        start = end
    return result


def _part(fragment: Fragment, start: int, end: int) -> Fragment:
    origin = fragment.origin
    if origin is not None:
        origin = Span(origin.start + start, origin.start + end)
    return replace(fragment, text=fragment.text[start:end], origin=origin)
