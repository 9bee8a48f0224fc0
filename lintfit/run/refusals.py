"""What the parsers of a run refuse, without what nobody can hold against its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lintfit.documents.markdown import is_page
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.placeholders import is_to_fill_in
from lintfit.frozen import replace
from lintfit.sources.flag_grammars.model import HUGGING_FACE, but_for_set
from lintfit.sources.flag_grammars.refused import of_launch
from lintfit.versions import FORK

if TYPE_CHECKING:
    from lintfit.run.locate import Locator
    from lintfit.run.precedence import Sources
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch
    from lintfit.versions import Versions


def refused_of(sources: Sources, versions: Versions, locator: Locator) -> tuple[Refused, ...]:
    """What the parsers refuse, without what a front end's own code in the tree, or another one's, may take or read,
    what a copy of a library there declares, for that may be the one that is installed, and what the parser of a script
    refuses that is perhaps another than the one that starts.

    A page tells of the release, or of the copy of a front end, that its project goes with.
    """
    found = of_launch(sources.launch, sources.script, sources.recipe, versions)
    found = tuple(replace(each, fork=_fork_of(each, sources, versions)) for each in found)
    found = tuple(but_for_set(each) for each in found if each.twice or not _is_to_fill_in(each, sources.launch))
    if sources.launch is not None and sources.script is not None and locator.is_guessed(sources.script.document.path):
        found = tuple(each for each in found if each.parser.startswith(sources.launch.launcher))
    of_recipe = {each.place for each in (sources.recipe.refused if sources.recipe is not None else ())}
    if not of_recipe and all(each.parser not in HUGGING_FACE for each in found):
        return found
    from lintfit.run.key_reads import key_reads

    reads = key_reads(locator.workspace)

    def is_open(each: Refused) -> bool:
        path = each.place.document.path
        if each.place not in of_recipe:
            copies = reads.declared(path, each.name.lstrip("-").replace("-", "_")) if _is_of_field(each) else ()
            return any(not _LIBRARIES.isdisjoint(module.parts[:-1]) for module in copies)
        if is_page(path) or reads.declared(path, each.name.lstrip("-")):
            return True
        return each.key and each.ignored and reads.of_recipe(path, each.name) is not None

    return tuple(each for each in found if not is_open(each))


def _fork_of(refused: Refused, sources: Sources, versions: Versions) -> str:
    """The library that a project has a fork of, where that may take what its releases do not know."""
    if not refused.refusal.unrecognized:
        return ""
    libraries = [refused.parser.split(" ", 1)[0]]
    libraries += ["transformers", "trl"] if refused.parser in HUGGING_FACE else []
    dialect = sources.recipe.dialect if sources.recipe is not None else ""
    libraries.append("ms-swift" if dialect == "swift" else dialect)
    return next((library for library in libraries if library + FORK in versions), "")


_LIBRARIES = frozenset({"transformers", "trl"})
"""The packages whose dataclasses make parsers."""


def _is_of_field(refused: Refused) -> bool:
    return refused.parser in HUGGING_FACE and (refused.key or bool(refused.refusal.unrecognized))


def _is_to_fill_in(refused: Refused, launch: Launch | None) -> bool:
    """Whether what is refused is a word for another one, or those behind it (``--max_steps xxx``, ``Put your model
    path here``), or a value's name as a usage line has it (``--seed SEED``, argparse's own ``metavar``)."""
    flag = launch.flag(refused.name.lstrip("-").replace("-", "_")) if launch is not None else None
    words = (flag.words or (flag.value or "",)) if flag is not None else ()
    if _OF_BRACKETS.match(refused.refusal.message):
        return True
    if launch is not None and _OF_A_METAVAR.match(refused.refusal.message) and _is_usage(launch):
        return True
    if launch is not None and len(words) > 1 and f"<{' '.join(words)}>" in launch.document.text:
        return True  # one that names a model by its size: <path to qwen2-7b>
    return any(map(is_to_fill_in, (*words, " ".join(words))))


_OF_BRACKETS = lazy_pattern(r"invalid (?:int|float) value: '\[[^']*'")
"""The same of a word in brackets, by which a synopsis says what may be left out; no number begins so."""
_OF_A_METAVAR = lazy_pattern(r"invalid (?:int|float) value: '[A-Z][A-Z\d_]*'")
"""What argparse says of a word in capitals where a number should stand; words of choices are often in capitals."""


def _is_usage(launch: Launch) -> bool:
    """Whether a launch stands in a page or a docstring."""
    path = launch.document.path
    return is_page(path) or path.suffix == ".py"
