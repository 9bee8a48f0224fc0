"""The flags of a launch, and the keys of its argument files, that the parser which reads them refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from lintfit.documents.patterns import lazy_pattern
from lintfit.sources.flag_grammars.model import Refused, given_flags, of_file
from lintfit.sources.flag_grammars.options import Given, Refusal

if TYPE_CHECKING:
    from lintfit.settings.model import Place
    from lintfit.sources.flag_grammars.grammar import Grammar, Read
    from lintfit.sources.flag_grammars.options import Option
    from lintfit.sources.flag_grammars.scripts import FileRead
    from lintfit.sources.launchers.launch import Launch
    from lintfit.sources.recipes.base import Recipe
    from lintfit.sources.script.source import ScriptSource

_REWRITES = lazy_pattern(
    r"\bsys\.argv\s*(?:=[^=]|\+=|\.\w+\(|\[[^]]*\]\s*=[^=])|\bdel\s+sys\.argv|\bargv\.(?:pop|remove)\("
)
"""Code that changes the command line before a parser reads it."""


_MORE = lazy_pattern(r"\$\{?[@*1-9]")
_NAMES_VARIABLE = lazy_pattern(r"\$\{?[A-Za-z_]")
_VARIABLE = lazy_pattern(r"(?:[\s=]|\\\n)*\"?\$\{?[A-Za-z_]")


def _is_to_be_filled_in(flag: Place, refusal: Refusal) -> bool:
    """Whether a parser misses a value behind a flag, or refuses an empty one, where a variable is written that is empty
    as the script stands: its value is left to the user, or to who calls the script."""
    if refusal.message.endswith(": ''"):
        return _NAMES_VARIABLE.search(flag.document.text, flag.span.start, flag.span.end) is not None
    return bool(refusal.lacks_value and _VARIABLE.match(flag.document.text, flag.span.end))


def _is_blank(refusal: Refusal) -> bool:
    """Whether a flag stands without its value, which who hands a command on leaves to its reader."""
    return refusal.lacks_value and not refusal.plain


def of_launch(
    launch: Launch | None, script: ScriptSource | None, recipe: Recipe | None, versions: Mapping[str, str]
) -> tuple[Refused, ...]:
    """What the parsers of a run refuse: its launcher's, its script's or its front end's."""
    found: list[Refused] = []
    if launch is not None:
        from lintfit.sources.flag_grammars import programs

        # Behind the first it is not known any more what is an option's value, and what the script.
        found += islice(programs.of_launcher(launch, versions), 1)
    if recipe is not None:
        found += recipe.refused
    found = [each for each in found if not _is_to_be_filled_in(each.place, each.refusal)]
    if script is not None and script.walk.parsed:
        found += _of_script(launch, script, versions)
    return tuple(found)


def _of_script(launch: Launch | None, script: ScriptSource, versions: Mapping[str, str]) -> Iterator[Refused]:
    """What the parser of a script refuses, each flag once; where there are several, what each of them does.

    One that cannot be made refuses nothing else.
    """
    from lintfit.sources.flag_grammars.scripts import not_made

    unmade = next(not_made(script.walk, script.reading.calls), None)
    if unmade is not None:
        yield unmade
        return
    if (launch is None or not launch.flags) and all(each.home is None for each in script.walk.parsed):
        return
    from lintfit.sources.flag_grammars.functions import made_of_functions
    from lintfit.sources.flag_grammars.scripts import before_rewriting, files_of, parsers_of

    if script.reading.calls.say(_REWRITES):
        first = before_rewriting(script.walk, script.reading.calls, _REWRITES, versions)
        yield from _of_flags(launch, first) if launch is not None and first is not None else ()
        return
    made = (*parsers_of(script.walk, versions), *made_of_functions(script.walk, script.reading.calls.documents))
    refused = [{each.place.span.start: each for each in _of_flags(launch, one)} for one in made if launch is not None]
    for start, each in refused[0].items() if refused else ():
        if all(start in others for others in refused):
            yield each
    yield from _of_files([*files_of(script.walk, versions)])


_MOST = 20
"""Flags of one command that are said to be refused: the parser itself stops at the first."""
_MOST_REFUSED = 25
"""Flags of one command behind which no other is asked about: of some it is not said that they are refused."""


def _of_files(reads: Sequence[FileRead]) -> Iterator[Refused]:
    """What the first parser refuses that refuses anything: it stops there, and those behind it read nothing.

    Of the keys that another parser of the same file takes, one stands for all. What a parser passes over is nowhere
    read only if no other takes it.
    """
    said: set[int] = set()
    for read in reads:
        if read.parser is None:
            continue
        others = [each.parser for each in reads if each.document is read.document]
        taken: list[Refused] = []
        alone: list[Refused] = []
        for each in of_file(read.parser.name, read.parser.grammar, read.document, read.ignored, read.until):
            lacking = all(other is not None and other.grammar.lacks(each.name) for other in others)
            (alone if lacking else taken).append(each)
        if read.ignored and read.until is None:
            yield from (each for each in alone if each.place.span.start not in said)
            said |= {each.place.span.start for each in alone}
            continue
        refused = [*alone, *taken[:1]]
        yield from refused
        if refused:
            return


def _of_flags(launch: Launch, parser: Read) -> Iterator[Refused]:
    said: set[str] = set()
    every = [*given_flags(launch)]
    clashing = parser.grammar.clashing()
    if clashing:
        yield from _declared_twice(every, clashing, parser)
        return
    yield from _added(launch, parser)
    lacking = parser.grammar.lacking([given for _, given in every]) if _is_whole(launch, len(every)) else ()
    refusals = [*_refusals(every, parser.grammar)]
    blank = [(place, given, why) for place, given, why in refusals if why and _is_blank(why)]
    template = len({given.name for _, given, _ in blank}) > 1 and any(
        not _is_to_be_filled_in(place, why) for place, _, why in blank
    )
    if template:
        place, first, why = blank[0]
        blanks = tuple(dict.fromkeys(given.name for _, given, _ in blank))
        said.update(blanks)
        yield Refused(place, first.name, parser.name, why, stops=parser.stops, blanks=blanks)
    plain: set[str] = set()
    for place, given, refusal in refusals:
        if given.name in said or len(said) >= _MOST:
            continue
        if refusal is not None and not _is_to_be_filled_in(place, refusal):
            said.add(given.name)
            by = parser.grammar.refused_for(given)
            yield Refused(place, given.name, parser.name, refusal, stops=parser.stops, decided_by=by, lacking=lacking)
        elif refusal is None and given.name not in plain:
            plain.add(given.name)
            newer = parser.grammar.ambiguous_in_newer(given)
            if newer is not None:
                yield Refused(place, given.name, parser.name, newer[0], stops=parser.stops, newer=newer[1])


def _refusals(every: Iterable[tuple[Place, Given]], grammar: Grammar) -> Iterator[tuple[Place, Given, Refusal | None]]:
    """The flags of a command with why each is refused, up to some that are."""
    why_not: dict[Given, Refusal | None] = {}
    refused = 0
    for place, given in every:
        if given not in why_not:
            why_not[given] = grammar.refused(given)
            refused += why_not[given] is not None
        yield place, given, why_not[given]
        if refused >= _MOST_REFUSED:
            return


def _is_whole(launch: Launch, known: int) -> bool:
    """Whether all flags of a launch are known, and no word of it may be more of them (``"$@"``, ``$FLAGS``)."""
    words = launch.invocation.arguments
    if known < len(launch.flags) or any(value is None for option in words for value in option.values):
        return False
    return _MORE.search(launch.document.text, launch.place.span.start, launch.place.span.end) is None


def _declared_twice(
    every: Sequence[tuple[Place, Given]], clashing: Sequence[Option], parser: Read
) -> Iterator[Refused]:
    """That a parser cannot be made, at the first flag that two of its dataclasses declare."""
    for place, given in every:
        option = next((each for each in clashing if given.name in each.names), None)
        if option is not None:
            strings = f"string{'s' if len(option.names) > 1 else ''}: {', '.join(option.names)}"
            message = f"argument {'/'.join(option.names)}: conflicting option {strings}"
            yield Refused(place, given.name, parser.name, Refusal(message), stops=parser.stops, twice=True)
            return


def _added(launch: Launch, parser: Read) -> Iterator[Refused]:
    """The rank that DeepSpeed's launcher hands each process, where a parser does not take it.

    torch's older launcher spells it by its own version.
    """
    for flag in launch.rank_flags if launch.launcher == "deepspeed" else ():
        given = Given(f"--{flag.name}", (flag.value or "",), glued=True)
        refusal = parser.grammar.refused(given)
        if refusal is not None:
            yield Refused(flag.place, given.name, parser.name, refusal, stops=parser.stops, added_by=launch.launcher)
