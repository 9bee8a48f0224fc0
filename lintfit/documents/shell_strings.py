"""Commands within the string that ``eval`` or ``bash -c`` runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from lintfit.documents import bounds
from lintfit.documents.model import Span
from lintfit.documents.shell_expansion import as_words, split, words
from lintfit.documents.shell_tokens import skip_dollar
from lintfit.documents.shell_words import Fragment, Scope, Word, part_of
from lintfit.frozen import replace

Expanded = tuple[Word, tuple[Fragment, ...]]
"""A word with its pieces."""
_OPERATOR = re.compile(r"(?:[0-9]?>|<|&>|\||&|;)")
"""What a word begins with that ends a command or redirects it."""
_SET_INSIDE = re.compile(
    r"(?:^|[\n;]|&&)[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=([^\s;&|$`'\"(]+)(?=[ \t]*(?:[\n;]|&&|$))"
)
"""An assignment of a plain value, which is a command of its own, within a string that is run."""
_QUOTE = re.compile(r"\\?[\"']")
"""A quote in a string that is run, escaped or not."""
_REFERENCE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
JOINTS = frozenset((";", "&&"))
"""Words of a string that is run which part its commands."""


def with_strings(text: str, found: list[Expanded], scope: Scope) -> list[Expanded]:
    """The words with those inside the string that ``eval`` or ``bash -c`` runs."""
    values = [word.value for word, _ in found]
    run = _string_run(values)
    if run is None:
        return found
    result = found[:run]
    for word, fragments in found[run : None if run == 1 else run + 1]:
        literal = _single_quoted(text, word, fragments)
        if literal is not None:
            result.extend(words(text, literal, scope))
            continue
        # What is written in the string itself is split as if it came through a reference to it.
        loose = [replace(part, quoted=False, through=(*part.through, word.at)) for part in fragments]
        bare = _without_quotes(_whole_substitutions(loose))
        parted = _lines_parted(_expanded_again(bare, scope, own=run == 1))
        lists = split([parted])
        result.extend(zip(as_words(lists, word.at), lists, strict=True))
    # The redirects and pipes of the string are no arguments; its further commands stay, with what parts them.
    inside = takewhile(lambda item: item[0].text in JOINTS or not _OPERATOR.match(item[0].text), result[run:])
    return [*result[:run], *inside]


def _string_run(values: Sequence[str | None]) -> int | None:
    """The index of the word that is run as a command; None where there is none."""
    if values[:1] == ["eval"]:
        return 1
    for index, value in enumerate(values[1:-1], 1):
        if value in ("-c", "-lc", "-ec") and (values[index - 1] or "").rpartition("/")[2] in ("bash", "sh"):
            return index + 1
    return None


def _single_quoted(text: str, word: Word, fragments: tuple[Fragment, ...]) -> Span | None:
    """The text of a word that is one string in single quotes, which the shell that runs it expands itself."""
    inside = Span(word.at.start + 1, word.at.end - 1)
    quoted = text[word.at.start : word.at.start + 1] == "'"
    return inside if quoted and len(fragments) == 1 and fragments[0].origin == inside else None


def _expanded_again(fragments: Sequence[Fragment], scope: Scope, own: bool) -> list[Fragment]:
    """The references that are left in a string that is run (``\\$NAME``, ``'$NAME'``), which its own shell expands.

    ``own`` says that it is this shell (``eval``); another one knows what is exported.
    """
    text = "".join(part.text if part.known else "?" * len(part.text) for part in fragments)
    inside = [(each.end(), each[1], each[2]) for each in _SET_INSIDE.finditer(text)]
    result = list(fragments)
    for match in reversed([*_REFERENCE.finditer(text)]):
        if not scope.steps.take(len(result) + bounds.cost(items=len(inside))):
            break
        name = match[1] or match[2]
        variable = scope.variables.get(name)
        value = variable.value if variable is not None and (own or variable.exported) else None
        value = next((set_to for end, set_, set_to in reversed(inside) if set_ == name and end <= match.start()), value)
        before, (first, *rest), after = _parted(result, match.start(), match.end())
        middle = [replace(part, known=False) for part in (first, *rest)]
        result = [*before, *(middle if value is None else [replace(first, text=value, origin=None)]), *after]
    return result


def _without_quotes(fragments: Sequence[Fragment]) -> list[Fragment]:
    """The fragments of a string that is run without the quotes in its text (``CMD="a \\"$X\\""``), which its shell
    removes; what stands between two is not split. As they are where a quote has no end."""
    result: list[Fragment] = []
    quote, filled = "", True
    for part in fragments:
        start = 0
        for match in _QUOTE.finditer(part.text) if part.known else ():
            mark = match.group()
            if quote not in ("", mark[-1]) or (len(mark) > 1 and quote == "'" and mark[-1] != "'"):
                continue  # the other kind, which is text between these
            before = replace(part_of(part, start, match.start()), quoted=quote != "")
            result += [before] if before.text else []
            if len(mark) > 1 and quote != "'":
                start = match.end() - 1
                continue
            filled = filled or before.text != ""
            if quote and not filled:
                result.append(replace(part, text="", origin=None, quoted=True))
            quote, filled, start = "" if quote else mark[-1], False, match.end()
        rest = replace(part_of(part, start, len(part.text)), quoted=quote != "")
        filled = filled or rest.text != ""
        result += [rest] if rest.text or not part.text else []
    return result if not quote else list(fragments)


def _lines_parted(fragments: Sequence[Fragment]) -> list[Fragment]:
    """The fragments of a string that is run, with a ``;`` where one of its lines ends and its command does."""
    result: list[Fragment] = []
    for part in fragments:
        start = 0
        written = part.known and not part.quoted and len(part.through) == 1  # not what a variable brings
        for match in re.finditer(r"(?<!\\)\n", part.text) if written else ():
            result += [part_of(part, start, match.start()), replace(part, text=" ; ", origin=None)]
            start = match.end()
        result.append(part_of(part, start, len(part.text)) if start else part)
    return result


def _parted(fragments: Sequence[Fragment], start: int, end: int) -> tuple[list[Fragment], ...]:
    """The fragments before, within and behind a stretch of their joined text."""
    parts: tuple[list[Fragment], ...] = ([], [], [])
    at = 0
    for fragment in fragments:
        stop = at + len(fragment.text)
        for part, (low, high) in zip(parts, ((at, start), (start, end), (end, stop)), strict=True):
            low, high = max(at, low), min(stop, high)
            if low < high:
                part.append(part_of(fragment, low - at, high - at))
        at = stop
    return parts


def _whole_substitutions(fragments: Sequence[Fragment]) -> list[Fragment]:
    """The fragments of a string that is run, with every ``$(…)`` of its text as one unknown that is not split."""
    text = "".join(part.text if part.known else "?" * len(part.text) for part in fragments)
    holes: list[Span] = []
    offset = text.find("$(")
    while offset >= 0:
        holes.append(Span(offset, min(skip_dollar(text, offset, len(text)), len(text))))
        offset = text.find("$(", holes[-1].end)
    result: list[Fragment] = []
    start = first = 0
    for part in fragments:
        at, end = start, start + len(part.text)
        for hole in holes[first:]:
            if hole.start >= end:
                break
            low, high = max(at, hole.start), min(end, hole.end)
            first += hole.end <= end
            if low < high:
                result += [part_of(part, at - start, low - start)] if at < low else []
                result.append(replace(part_of(part, low - start, high - start), known=False))
                at = high
        result += [part_of(part, at - start, end - start)] if at < end or not part.text else []
        start = end
    return result
