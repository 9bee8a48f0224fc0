"""What variables of a shell script are after a branch that may or may not have run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from lintfit.documents.shell_words import Fragment, Variable, text_of
from lintfit.frozen import replace

_FLAG = re.compile(r"(?:^|(?<=\s))(?P<name>-{1,2}[A-Za-z][\w.-]*=?)")
"""A flag in a text of several words, with the ``=`` that glues its value to it."""
_Element = tuple[Fragment, ...]


def after_branches(before: Mapping[str, Variable], ends: Sequence[Mapping[str, Variable]]) -> dict[str, Variable]:
    """What is set where several ways meet. ``before`` is what was set in front of them, ``ends`` at the end of each.

    A value that all ways give is known, and written in no one place. What a way adds to a list of words leaves the
    words in front of it known; of the added ones only the names of flags are: a flag that may be there has a value
    that nobody knows. All else is unknown.
    """
    names = dict.fromkeys(name for end in ends for name in end)
    met = {name: _met(before.get(name), [end.get(name) for end in ends]) for name in names}
    return {name: variable for name, variable in met.items() if variable is not None}


def _met(before: Variable | None, ends: Sequence[Variable | None]) -> Variable | None:
    given = [variable for variable in ends if variable is not None]
    last = next((variable for variable in reversed(given) if variable is not before), given[-1])
    if all(variable is last for variable in ends):
        return last
    if len(given) == len(ends) and all(_same(variable, last) for variable in given):
        # What is as it was keeps its place; what each way sets anew stands in several.
        return before if before in given else replace(last, elements=tuple(map(_nowhere, last.elements)))
    added = _with_doubtful_words(before, given) if before is not None and len(given) == len(ends) else None
    return added or last.unknown()


def _unknown(variable: Variable) -> Fragment:
    return Fragment(f"${{{variable.name}}}", variable.value_span, known=False)


def _same(one: Variable, other: Variable) -> bool:
    return one.array == other.array and [*map(_written, one.elements)] == [*map(_written, other.elements)]


def _written(element: _Element) -> tuple[str, bool]:
    return text_of(element), all(part.known for part in element)


def _nowhere(element: _Element) -> _Element:
    """The same pieces as if they were computed: no edit of one place changes them."""
    return tuple(replace(part, origin=None) if part.known else part for part in element)


def _with_doubtful_words(before: Variable, ends: Sequence[Variable]) -> Variable | None:
    """A list of words with those that some ways add behind it; None where a way sets something else."""
    tails = [_added(before, end) for end in ends if end is not before]
    if any(tail is None for tail in tails):
        return None
    last = next(variable for variable in reversed(ends) if variable is not before)
    flags = dict.fromkeys(flag for tail in tails for flag in _FLAG.findall(tail or ""))
    words = [word for flag in flags for word in _doubtful(flag, last)] or [(_hole(last),)]
    if before.array:
        return replace(last, elements=(*before.elements, *words))
    blank = Fragment(" ", None)
    pieces = [part for word in words for part in (blank, *word)]
    return replace(last, elements=((*(before.elements[0] if before.elements else ()), *pieces),))


def _hole(variable: Variable) -> Fragment:
    return replace(_unknown(variable), origin=None)


def _doubtful(flag: str, variable: Variable) -> Iterator[_Element]:
    """A flag that may be there, as one whose word and value are not known."""
    name = Fragment(flag, None, known=False)
    if flag.endswith("="):
        yield (name, _hole(variable))
        return
    yield (name,)
    yield (_hole(variable),)


def _added(before: Variable, after: Variable) -> str | None:
    """The words that a variable has more than before, blanks for what is not known of them; None if it is another."""
    if before.array:
        kept = len(before.elements)
        if not after.array or [*map(_written, after.elements[:kept])] != [*map(_written, before.elements)]:
            return None
        return " ".join(map(_known_text, after.elements[kept:]))
    if after.array or len(before.elements) != 1 or len(after.elements) != 1:
        return None
    old, new = text_of(before.elements[0]), text_of(after.elements[0])
    tail = new[len(old) :]
    whole = not old.strip() or old[-1:].isspace() or tail[:1].isspace()
    several = re.search(r"\s", new) is not None or _FLAG.match(new) is not None
    if not new.startswith(old) or not whole or not several:
        return None
    return _known_text(after.elements[0])[len(old) :]


def _known_text(element: _Element) -> str:
    return "".join(part.text if part.known else " " * len(part.text) for part in element)
