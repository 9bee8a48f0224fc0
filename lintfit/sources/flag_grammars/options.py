"""One option of a command line's parser, and whether argparse takes the words of one flag for it.

Which option a flag means is argparse's rule (its full name, else the one that it begins); its words are handed to argparse
itself. Error messages are argparse's own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from lintfit.frozen import field, frozen
from lintfit.sources.flag_grammars.kinds import ANY, CHOICE, SEVERAL
from lintfit.suggest import most_alike, nearest

_ALIKE = 0.75
"""The share that a longer flag and the one that was meant have in common."""
_UNSEEN = "\0"
"""Stands for a word that only the shell knows; every option takes it."""
_TRUTH = frozenset({"yes", "true", "t", "y", "1", "no", "false", "f", "n", "0"})
"""What HfArgumentParser takes for a truth value (``string_to_bool``, transformers 4.28 to 5.23)."""


@frozen
class Option:
    """An option: how it may be written (with its dashes), and which words it takes.

    ``kind`` is one of :mod:`.kinds`; ``nargs`` is argparse's, ``0`` for an option without a value and ``None`` for one value.
    """

    names: tuple[str, ...]
    kind: str = ANY
    nargs: str | int | None = None
    choices: tuple[Any, ...] = ()


HELP = Option(("-h", "--help"), nargs=0)


@frozen
class Refusal:
    """What a parser says of a flag, in its own words; ``meant`` is the flag that was probably meant.

    ``unrecognized`` are the words that it knows nothing to do with. ``by_value`` says that it knows the flag.
    """

    message: str
    meant: str | None = None
    unrecognized: tuple[str, ...] = ()
    by_value: bool = False
    known_as: str = field(default="")
    """The full name of the option that it knows the flag as."""


class _Refused(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Refused(message)


def written_in_full(name: str, options: Iterable[Option]) -> bool:
    """Whether an option has exactly this name."""
    return any(name in option.names for option in options)


def refusal(
    name: str, words: Sequence[str], options: Sequence[Option], abbreviates: bool = True, positional: bool = False
) -> Refusal | None:
    """Why a parser of these options refuses a flag with these words; None where it takes them.

    ``name`` is with its dashes, ``positional`` says that the parser takes words of its own as well.
    """
    found = _meant_by(name, options, abbreviates)
    if not found:
        loose = words if not positional else ()
        return Refusal("unrecognized arguments", suggested(name, options), (name, *loose))
    if len(found) > 1:
        could = ", ".join(next(each for each in option.names if each.startswith(name)) for option in found)
        return Refusal(f"ambiguous option: {name} could match {could}", None)
    return _of_words(found[0], words, positional)


def _meant_by(name: str, options: Sequence[Option], abbreviates: bool) -> list[Option]:
    exact = [option for option in options if name in option.names]
    if exact:
        return exact[-1:]
    if not name.startswith("--"):
        short = [option for option in options if any(each.startswith(name) or name[:2] == each for each in option.names)]
        return short[:1]
    return [option for option in options if abbreviates and any(each.startswith(name) for each in option.names)]


def suggested(name: str, options: Iterable[Option]) -> str | None:
    """The option that a misspelt flag stands for."""
    names = {each.lstrip("-"): each for option in options for each in option.names if each.startswith("--")}
    bare = name.lstrip("-")
    found = nearest(bare, names) or most_alike(bare, names, _ALIKE)
    return names[found] if found is not None else None


def _of_words(option: Option, words: Sequence[str], positional: bool) -> Refusal | None:
    """What argparse says of the words behind an option."""
    parser, name = _Parser(add_help=False, allow_abbrev=False), max(option.names, key=len)
    given: dict[str, Any] = {"dest": "value"}
    if option.nargs == 0:
        given["action"] = "store_true"
    else:
        given |= {"nargs": option.nargs, "type": _converter(option)}
        if option.nargs == "?":
            given["const"] = _UNSEEN
    if option.choices:
        given["choices"] = [*option.choices, _UNSEEN]
    parser.add_argument(name, **given)
    try:
        rest = parser.parse_known_args([name, *(_UNSEEN if _by_shell(word) else word for word in words)])[1]
    except _Refused as error:
        meant = None
        if option.choices and words:
            meant = nearest(words[0], map(str, option.choices))
        message = str(error).partition(" (choose from")[0].partition(": ")[2]
        return Refusal(message, meant, by_value=True, known_as=name)
    loose = tuple(word for word in rest if word != _UNSEEN)
    if loose and not positional:
        return Refusal("unrecognized arguments", None, loose, by_value=True, known_as=name)
    return None


def _by_shell(word: str) -> bool:
    return "$" in word or "`" in word


def _converter(option: Option) -> Callable[[str], Any]:
    kind = option.kind.removesuffix(SEVERAL)

    def convert(text: str) -> Any:
        if text == _UNSEEN or kind not in ("int", "float", "bool", "flag", "flag+"):
            return text
        if kind in ("bool", "flag", "flag+"):
            if text.lower() not in _TRUTH:
                raise argparse.ArgumentTypeError(f"Truthy value expected: got {text}")
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
    elif kind:
        yield Option(names, kind, "?" if kind in ("flag", "flag+") else None)
    if kind == "flag+":
        yield Option((f"--no_{name}", f"--no-{dashed}"), nargs=0)
