"""One option of a command line's parser, and whether argparse takes the words of one flag for it.

Which option a flag means is argparse's rule (its full name, else the one that it begins); its words are handed to
argparse itself. Error messages are argparse's own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen, replace
from lintfit.memo import Memo
from lintfit.sources.flag_grammars.kinds import ANY, CHOICE, OPEN, OPTIONAL, SEVERAL
from lintfit.suggest import most_alike, nearest

if TYPE_CHECKING:
    from argparse import ArgumentParser

_ALIKE = 0.75
"""The share that a longer flag and the one that was meant have in common."""
_NAMED = 2
"""How many words a message repeats."""
_LONGEST = 40
"""Characters of a word that it repeats."""
_UNSEEN = "\0"
"""Stands for a word that only the shell knows; every option takes it."""
_TO_FILL_IN = lazy_pattern(r"[$`<>{}]|\.\.\.|^[.…]+$")
"""What a word holds that only the shell knows, or that whoever runs the command puts something in for."""
_TRUTH = frozenset({"yes", "true", "t", "y", "1", "no", "false", "f", "n", "0"})
"""What HfArgumentParser takes for a truth value (``string_to_bool``, transformers 4.28 to 5.23)."""


@frozen
class Option:
    """An option: how it may be written (with its dashes), and which words it takes.

    ``kind`` is one of :mod:`.kinds`; ``nargs`` is argparse's, ``0`` for an option without a value and ``None`` for one
    value. ``required`` says that the parser stops without it.
    """

    names: tuple[str, ...]
    kind: str = ANY
    nargs: str | int | None = None
    choices: tuple[Any, ...] = ()
    required: bool = False


HELP = Option(("-h", "--help"), nargs=0)


_EXPECTS = lazy_pattern(r"expected (?:one|at least one|\d+) argument")


@frozen
class Refusal:
    """What a parser says of a flag, in its own words; ``meant`` is the flag that was probably meant.

    ``unrecognized`` are the words that it knows nothing to do with. ``by_value`` says that it knows the flag.
    """

    message: str
    meant: str | None = None
    unrecognized: tuple[str, ...] = ()
    by_value: bool = False
    known_as: str = ""
    """The full name of the option that it knows the flag as."""
    plain: bool = False
    """Whether what is meant is plain: a truth value without its value is true."""

    @property
    def lacks_value(self) -> bool:
        """Whether the parser misses a value behind the flag."""
        return _EXPECTS.search(self.message) is not None

    @property
    def ambiguous(self) -> bool:
        """Whether it could be short for more than one option."""
        return self.message.startswith("ambiguous")


class _Refused(Exception):
    pass


@cache
def _parser() -> type[ArgumentParser]:
    """An argparse that raises its error; loaded where a flag with its words is looked at."""
    from argparse import ArgumentParser

    class Parser(ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise _Refused(message)

    return Parser


def written_in_full(name: str, options: Iterable[Option]) -> bool:
    """Whether an option has exactly this name."""
    return any(name in option.names for option in options)


@frozen
class Given:
    """A flag of a command line as it is written: its name with its dashes, and the words behind it.

    A word that only the shell knows has a ``$``. ``glued`` says that the one word stands behind a ``=``.
    """

    name: str
    words: tuple[str, ...] = ()
    glued: bool = False

    def split(self) -> tuple[str, ...]:
        """The words that a parser is handed."""
        words = tuple(_UNSEEN if _TO_FILL_IN.search(word) else word for word in self.words)
        return (f"{self.name}={words[0]}",) if self.glued else (self.name, *words)


def refusal(
    given: Given, options: Sequence[Option], abbreviates: bool = True, positional: bool = False
) -> Refusal | None:
    """Why a parser of these options refuses a flag; None where it takes it with its words.

    ``positional`` says that the parser takes words of its own as well.
    """
    found = unknown(given, options, abbreviates, positional)
    option = next(iter(_meant_by(given.name, options, abbreviates)), None)
    return found if found is not None or option is None else _of_value(given, option, positional)


def takes(given: Given, options: Sequence[Option], abbreviates: bool = True, positional: bool = False) -> bool:
    """Whether a parser of these options takes a flag with its words: what else was meant takes long to find."""
    found = _meant_by(given.name, options, abbreviates)
    return len(found) == 1 and _of_value(given, found[0], positional) is None


def lacking(given: Iterable[Given], options: Sequence[Option], abbreviates: bool = True) -> tuple[str, ...]:
    """The required options that none of these flags is, as argparse calls them."""
    there = [id(option) for each in given for option in _meant_by(each.name, options, abbreviates)]
    return tuple("/".join(option.names) for option in options if option.required and id(option) not in there)


def _of_value(given: Given, option: Option, positional: bool) -> Refusal | None:
    """What is wrong with the words of an option; None where nothing is."""
    if not given.name.startswith("--") and not written_in_full(given.name, (option,)):
        return None  # ``-b4``: the value stands in the same word
    kinds = tuple(map(type, (option.nargs, *option.choices)))
    try:
        return _of_words(option, given, positional, kinds)
    except TypeError:  # a choice that cannot be looked up
        return _of_words.__wrapped__(option, given, positional, kinds)


def unknown(
    given: Given, options: Sequence[Option], abbreviates: bool = True, positional: bool = False
) -> Refusal | None:
    """The same for the name of a flag alone: why the parser knows no option, or more than one, by that name."""
    name = given.name
    found = _meant_by(name, options, abbreviates)
    if not found:
        unrecognized = given.split() if not positional else given.split()[:1]
        return Refusal("unrecognized arguments", suggested(name, options), _few([_said(word) for word in unrecognized]))
    if len(found) > 1:
        could = [next(each for each in option.names if each.startswith(name)) for option in found]
        stem = min(could, key=len)
        meant = stem if all(each.startswith(stem) for each in could) else None
        return Refusal(f"ambiguous option: {name} could match {', '.join(_few(could))}", meant)
    return None


class _Names:
    """The names of a parser's options, to be looked up in."""

    __slots__ = ("_sorted", "last")

    def __init__(self, options: Sequence[Option]) -> None:
        self.last = {name: option for option in options for name in option.names}
        """The last option of each name."""
        self._sorted = sorted((name, at) for at, option in enumerate(options) for name in option.names)

    def beginning_with(self, name: str) -> list[int]:
        """The indices of the options of which a name begins so."""
        start = end = bisect_left(self._sorted, (name, -1))
        while end < len(self._sorted) and self._sorted[end][0].startswith(name):
            end += 1
        return sorted({at for _, at in self._sorted[start:end]})


_NAMES: Memo[_Names] = Memo(256)
"""Thousands of flags, each asked of all options of dozens of versions, take seconds where each looks at every name."""


def _meant_by(name: str, options: Sequence[Option], abbreviates: bool) -> list[Option]:
    names = _NAMES.get(options, None, partial(_Names, options))
    if name in names.last:
        return [names.last[name]]
    if not name.startswith("--"):
        short = [
            option for option in options if any(each.startswith(name) or name[:2] == each for each in option.names)
        ]
        return short[:1]
    return [options[at] for at in names.beginning_with(name)] if abbreviates else []


def suggested(name: str, options: Iterable[Option]) -> str | None:
    """The option that a misspelt flag stands for."""
    return _suggested(name, tuple(each for option in options for each in option.names if each.startswith("--")))


@lru_cache(maxsize=1024)
def _suggested(name: str, options: tuple[str, ...]) -> str | None:
    """Kept: a run is read again for each version that its reading hangs on, and its launches have flags in common."""
    names = {each.lstrip("-"): each for each in options}
    bare = name.lstrip("-")
    inner = next((each for each in names if each.rpartition(".")[2] == bare), None)
    found = inner or nearest(bare, names) or _shortened(bare, names) or most_alike(bare, names, _ALIKE)
    return names[found] if found is not None else None


def _shortened(name: str, names: Iterable[str]) -> str | None:
    """The first name that has all words of a shorter one in their order, or longer ones: ``max_seq_len``."""
    words = name.replace("-", "_").split("_")
    longest = max(words, key=len)
    for each in names:
        if longest not in each:
            continue  # which most are told apart by
        rest = iter(each.replace("-", "_").split("_"))
        if len(words) > 1 and all(any(longer.startswith(word) for longer in rest) for word in words):
            return each
    return None


@lru_cache(maxsize=4096)
def _of_words(option: Option, given: Given, positional: bool, kinds: tuple[type, ...]) -> Refusal | None:
    """What argparse says of the words behind an option. Kept: launches and versions have most of both in common.

    ``kinds`` tell options apart whose number of words and choices are equal and of other types (``1``, ``True``).
    """
    parser, name = _parser()(add_help=False, allow_abbrev=False), max(option.names, key=len)
    how: dict[str, Any] = {"dest": "value"}
    if option.nargs == 0:
        how["action"] = "store_true"
    else:
        how |= {"nargs": option.nargs, "type": _converter(option)}
        if option.nargs == "?":
            how["const"] = _UNSEEN
    if option.choices:
        how["choices"] = [*option.choices, _UNSEEN]
    parser.add_argument(name, **how)
    try:
        rest = parser.parse_known_args(replace(given, name=name).split())[1]
    except _Refused as error:
        message = str(error).partition(" (choose from")[0].partition(": ")[2]
        meant = nearest(given.words[0], map(str, option.choices)) if option.choices and given.words else None
        return Refusal(message, meant, by_value=True, known_as=name, plain=option.kind == "bool" and not given.words)
    loose = tuple(word for word in rest if word != _UNSEEN)
    if loose and not positional:
        return Refusal("unrecognized arguments", None, _few(loose), by_value=True, known_as=name)
    return None


def _said(word: str) -> str:
    return word.replace(_UNSEEN, "…")


def _few(words: Sequence[str]) -> tuple[str, ...]:
    """As many words as a message has room for."""
    short = tuple(word if len(word) <= _LONGEST else f"{word[:_LONGEST]}…" for word in words[:_NAMED])
    return short if len(words) <= _NAMED else (*short, "…")


def _converter(option: Option) -> Callable[[str], Any]:
    kind = option.kind.removesuffix(SEVERAL)

    def convert(text: str) -> Any:
        if text == _UNSEEN or kind not in ("int", "float", "bool", "flag", "flag+"):
            return text
        if kind in ("bool", "flag", "flag+"):
            if text.lower() not in _TRUTH:
                from argparse import ArgumentTypeError

                raise ArgumentTypeError(f"Truthy value expected: got {text}")
            return text
        return int(text) if kind == "int" else float(text)

    convert.__name__ = kind
    return convert


def of_kind(name: str, kind: str, dashes: bool) -> Iterable[Option]:
    """The options that HfArgumentParser makes of a field; ``dashes`` where it takes ``--a-b`` for ``--a_b``, too."""
    dashed = name.replace("_", "-")
    names = (f"--{name}", f"--{dashed}") if dashes and dashed != name else (f"--{name}",)
    if kind.startswith(CHOICE):
        yield Option(names, choices=tuple(kind[1:].split("|")))
    elif kind.endswith(SEVERAL):
        yield Option(names, kind, "+")
    elif kind == OPEN:
        yield Option(names, nargs="*")
    elif kind.endswith(OPTIONAL):
        yield Option(names, kind.removesuffix(OPTIONAL), "?")
    elif kind:
        yield Option(names, kind, "?" if kind in ("flag", "flag+") else None)
    if kind == "flag+":
        yield Option((f"--no_{name}", f"--no-{dashed}"), nargs=0)
