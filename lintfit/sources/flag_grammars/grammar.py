"""What a command line's parser takes, over the versions of the libraries that a project may have."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from lintfit.catalog import arguments
from lintfit.catalog.arguments import Studied
from lintfit.frozen import field, frozen, replace
from lintfit.memo import Memo
from lintfit.sources.flag_grammars.options import (
    HELP,
    Given,
    Option,
    Refusal,
    lacking,
    of_kind,
    refusal,
    suggested,
    takes,
    unknown,
    written_in_full,
)

_FLOOR = ">="
"""Ends the key of a project's versions under which the oldest stands that it takes."""
_COMMIT = "@"
"""Ends the key under which the commit stands that it takes a library from."""
_LIBRARIES = ("transformers", "trl")
_WIDENED: Memo[Grammar] = Memo(64)
"""A parser as any version of one of its libraries makes it."""
_OPTIONS: Memo[tuple[Option, ...]] = Memo(256)
"""The options of a parser at some versions of its libraries, for which each flag of a launch asks."""


@frozen
class Grammar:
    """A parser that was wholly read.

    ``own`` are the options that it has at any version, ``fields`` those of the script's own dataclasses by their kind,
    ``classes`` the dataclasses of libraries (``trl.SFTConfig``) whose fields are options, too. ``ranges`` are the
    studied versions that count, by library; ``positional`` says that it takes words without a name. ``parts`` are the
    same fields and classes, one for each dataclass that it is made of.
    """

    own: tuple[Option, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    ranges: tuple[Studied, ...] = ()
    abbreviates: bool = True
    positional: bool = False
    parts: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = ()

    def clashing(self) -> tuple[Option, ...]:
        """The options that two dataclasses give it in each version that counts: it stops while it is made (argparse's
        ``_check_conflict``, which HfArgumentParser leaves as it is)."""
        if len(self.parts) < 2:
            return ()
        every = [self._named(indices) for indices in product(*(each.possible for each in self.ranges))]
        names = frozenset.intersection(*(frozenset(self._twice(named)) for named in every)) if every else frozenset()
        return tuple(option for option in self.newest() if option.names[0].removeprefix("--") in names)

    def _twice(self, named: tuple[tuple[str, int], ...]) -> Iterator[str]:
        seen: set[str] = set()
        for own, classes in self.parts:
            names = own | _fields(classes, named).keys()
            yield from names & seen
            seen |= names

    def lacking(self, given: Sequence[Given]) -> tuple[str, ...]:
        """The required options that these flags leave out."""
        return lacking(given, self.newest(), self.abbreviates)

    def newest(self) -> tuple[Option, ...]:
        """The options at the newest versions that count."""
        return self._at(tuple(each.possible[-1] for each in self.ranges))

    def refused(self, given: Given) -> Refusal | None:
        """Why every version refuses a flag with its words; None where one takes it.

        Where nothing says which version it is, one that is older than the recent ones counts only if it has a flag of
        exactly this name: that dates the command. Of an abbreviation nobody says so.
        """
        return refusal(given, self.newest(), self.abbreviates, self.positional) if self._refuses(given) else None

    def _refuses(self, given: Given) -> bool:
        if takes(given, self.newest(), self.abbreviates, self.positional):
            return False
        for indices in product(*(reversed(each.possible) for each in self.ranges)):
            options = self._at(indices)
            recent = all(at in each.recent for at, each in zip(indices, self.ranges, strict=True))
            if not recent and not written_in_full(given.name, options):
                continue
            if takes(given, options, self.abbreviates, self.positional):
                return False
        return True

    def refused_for(self, given: Given) -> tuple[str, ...]:
        """The libraries of which a version takes a flag, with its words, that those of the project refuse."""
        found = []
        for at, stated in enumerate(self.ranges):
            every = arguments.studied(stated.library, None, None)
            if every is None or len(every.possible) == len(stated.possible):
                continue
            if not _WIDENED.get(self, at, functools.partial(self._widened, at, every))._refuses(given):
                found.append(stated.library)
        return tuple(found)

    def _widened(self, at: int, every: Studied) -> Grammar:
        return replace(self, ranges=(*self.ranges[:at], every, *self.ranges[at + 1 :]))

    def ambiguous_in_newer(self, given: Given) -> tuple[Refusal, tuple[str, ...]] | None:
        """What the newest version that counts says of an abbreviation that could be of two options there and is of one
        in an older one (``--gradient_checkpoint``, before transformers 4.35), and the libraries that make it so."""
        newest = tuple(each.possible[-1] for each in self.ranges)
        refusal = unknown(given, self._at(newest), self.abbreviates, self.positional)
        if refusal is None or not refusal.ambiguous:
            return None
        older = (
            each.library
            for at, each in enumerate(self.ranges)
            for index in each.possible[:-1]
            if takes(given, self._at((*newest[:at], index, *newest[at + 1 :])), self.abbreviates, self.positional)
        )
        libraries = tuple(dict.fromkeys(older))
        return (refusal, libraries) if libraries else None

    def lacks(self, key: str) -> bool:
        """Whether no version has a field of this name: what a file of arguments is asked for."""
        if key in self.fields or any(f"--{key}" in option.names for option in self.own):
            return False
        every = product(*(each.possible for each in self.ranges))
        return not any(key in _fields(self.classes, self._named(indices)) for indices in every)

    def suggested_key(self, key: str) -> str | None:
        """The field that a misspelt key of a file stands for."""
        found = suggested(f"--{key}", [option for option in self.newest() if option is not HELP])
        return found.lstrip("-").replace("-", "_") if found is not None else None

    def _at(self, indices: tuple[int, ...]) -> tuple[Option, ...]:
        return _OPTIONS.get(self, indices, lambda: self._made_at(indices))

    def _made_at(self, indices: tuple[int, ...]) -> tuple[Option, ...]:
        named = self._named(indices)
        dashes = arguments.dashes_at(dict(named).get("transformers", 0)) if self.ranges else False
        if not self.own and not self.fields:
            return _with_help(self.classes, named, dashes)
        own = (option for name, kind in self.fields.items() for option in of_kind(name, kind, dashes))
        library = (option for option in _options(self.classes, named, dashes) if option.names[0][2:] not in self.fields)
        return (HELP, *self.own, *own, *library)

    def _named(self, indices: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
        return tuple((each.library, at) for each, at in zip(self.ranges, indices, strict=True))


@frozen(eq=False)
class Read:
    """A parser: what it is called, and what it takes.

    ``stops`` is False where what it refuses ends the script only when that has run.
    """

    name: str
    grammar: Grammar
    stops: bool = True


def ranges_of(classes: Sequence[str], versions: Mapping[str, str]) -> tuple[Studied, ...] | None:
    """The studied versions of the libraries of these classes that a project may have; None where it may have others."""
    found: list[Studied] = []
    for library in _LIBRARIES:
        needed = library == "transformers" or any(cls.startswith(f"{library}.") for cls in classes)
        if not needed:
            continue
        if library + _COMMIT in versions:
            return None
        one = arguments.studied(library, versions.get(library), versions.get(library + _FLOOR))
        if one is None:
            return None
        found.append(one)
    return tuple(found)


def exist(classes: Sequence[str], ranges: Sequence[Studied]) -> bool:
    """Whether the newest versions that count have all of these classes."""
    named = {each.library: each.possible[-1] for each in ranges}
    return all(arguments.fields_at(cls, named) is not None for cls in classes)


@functools.lru_cache(maxsize=1024)
def _fields(classes: tuple[str, ...], named: tuple[tuple[str, int], ...]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for cls in classes:
        found |= arguments.fields_at(cls, dict(named)) or {}
    return found


@functools.lru_cache(maxsize=1024)
def _options(classes: tuple[str, ...], named: tuple[tuple[str, int], ...], dashes: bool) -> tuple[Option, ...]:
    return tuple(option for name, kind in _fields(classes, named).items() for option in of_kind(name, kind, dashes))


@functools.lru_cache(maxsize=1024)
def _with_help(classes: tuple[str, ...], named: tuple[tuple[str, int], ...], dashes: bool) -> tuple[Option, ...]:
    """The options of a parser that adds none of its own: the same ones for all scripts that have such a parser."""
    return (HELP, *_options(classes, named, dashes))
