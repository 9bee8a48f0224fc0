"""The keys and flags that LLaMA-Factory does not take: ``HfArgumentParser`` stops at them (``hparams/parser.py``).

``ALLOW_EXTRA_ARGS=1`` lets them pass from 0.9.2 on. A file's values are not looked at by ``parse_dict``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from lintfit.catalog import arguments as libraries
from lintfit.catalog import llamafactory as catalog
from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.settings.model import Place
from lintfit.sources.flag_grammars.model import Refused, given_flags
from lintfit.sources.flag_grammars.options import HELP, Given, Option, Refusal, of_kind, refusal, takes, unknown
from lintfit.sources.recipes.llamafactory_arguments import SEQ2SEQ, TRAINING, LlamaFactoryArguments, named_file
from lintfit.sources.recipes.llamafactory_engine import enabled, other_backend

PARSER = "HfArgumentParser"
_TOLERANT = "0.9.2"
"""The release that first has ``ALLOW_EXTRA_ARGS``."""


def refused_by(arguments: LlamaFactoryArguments) -> Iterator[Refused]:
    """What the parser refuses, each flag and key once."""
    if other_backend(arguments) is not None:
        return  # Megatron's arguments and KTransformers' Trainer have fields of their own
    kinds = _kinds(arguments, arguments.at)
    if named_file(arguments.keys.launch) is not None and kinds.keys() >= arguments.keys.stated.keys():
        return  # most recipes: nothing needs argparse's words
    options = _options(kinds)
    ignored = enabled(arguments, "ALLOW_EXTRA_ARGS") and arguments.since(_TOLERANT)
    launch = arguments.keys.launch
    if named_file(launch) is None:
        yield from _flags(arguments, options, ignored)
        return
    for override in launch.overrides:
        found = unknown(Given(f"--{override.name}"), options, abbreviates=False)
        if found is not None:
            yield _of_key(arguments, override.place, override.name, found, ignored)
    yield from _keys(arguments, options, ignored)


def _flags(arguments: LlamaFactoryArguments, options: tuple[Option, ...], ignored: bool) -> Iterator[Refused]:
    seen: set[int] = set()
    for place, given in given_flags(arguments.keys.launch):
        found = refusal(given, options) if place.span.start not in seen else None
        seen.add(place.span.start)
        if found is None or (
            found.by_value and (_is_of_checkout(arguments, found) or _taken_elsewhere(arguments, given))
        ):
            continue
        history = catalog.history(given.name.lstrip("-"), arguments.at) if not found.by_value else None
        passed = ignored and not found.by_value
        yield Refused(place, given.name, PARSER, found, ignored=passed, history=history)


def _keys(arguments: LlamaFactoryArguments, options: tuple[Option, ...], ignored: bool) -> Iterator[Refused]:
    document = arguments.keys.config
    root = document.root if document is not None else None
    if document is None or root is None:
        return
    for entry in root.entries:
        found = unknown(Given(f"--{entry.key}"), options, abbreviates=False)
        if found is not None:
            yield _of_key(arguments, Place(document, entry.key_span), entry.key, found, ignored)


def _of_key(arguments: LlamaFactoryArguments, place: Place, key: str, found: Refusal, ignored: bool) -> Refused:
    history = catalog.history(key, arguments.at)
    return Refused(place, key, PARSER, _bare(found, key), key=True, ignored=ignored, history=history)


def _bare(found: Refusal, key: str) -> Refusal:
    """The same in the words of ``parse_dict``, which has keys without dashes."""
    meant = found.meant.removeprefix("--") if found.meant is not None else None
    return replace(found, unrecognized=(key,), meant=meant)


def _is_of_checkout(arguments: LlamaFactoryArguments, found: Refusal) -> bool:
    """Whether a word may be one that the checkout which a script is started in has added to a flag's choices: forks
    have losses and stages of their own (360-LLaMA-Factory's ``--pref_loss nca_pair``)."""
    own = arguments.keys.launch.script is not None and not arguments.dated
    return own and found.meant is None and found.message.startswith("invalid choice")


def _taken_elsewhere(arguments: LlamaFactoryArguments, given: Given) -> bool:
    """Whether another version that may run takes a flag with its words."""
    if arguments.dated:
        return False
    return any(takes(given, _options(_kinds(arguments, at))) for at in range(len(catalog.versions())))


def _options(kinds: Mapping[str, str]) -> tuple[Option, ...]:
    """What HfArgumentParser makes of fields of these kinds."""
    return _OPTIONS.get(kinds, None, lambda: _made_of(kinds))


_OPTIONS: Memo[tuple[Option, ...]] = Memo(256)


def _made_of(kinds: Mapping[str, str]) -> tuple[Option, ...]:
    return (HELP, *(option for name, kind in kinds.items() for option in of_kind(name, kind, True)))


def _kinds(arguments: LlamaFactoryArguments, at: int) -> Mapping[str, str]:
    """The fields of a version by name; those of transformers at all versions that the project may have."""
    newest, floor = (arguments.versions.get(name) for name in ("transformers", "transformers>="))
    if newest is not None and floor is not None and newest != floor and not newest.startswith("<"):
        newest = f"<{newest}.1"  # the upper end of a range (``<=5.8.0``), all of which may be installed
    return _kinds_of(at, arguments.dated, newest, floor)


@lru_cache(maxsize=256)
def _kinds_of(at: int, dated: bool, newest: str | None, floor: str | None) -> Mapping[str, str]:
    """Kept: the recipes of a tree have their versions in common."""
    studied = libraries.studied("transformers", newest, floor) or libraries.studied("transformers", None, None)
    kinds = dict.fromkeys(SEQ2SEQ, "any")
    for index in studied.possible if studied is not None else ():
        kinds |= libraries.fields_at(TRAINING, {"transformers": index}) or {}
    declared = catalog.fields(at) if dated else catalog.around(at)
    return kinds | {name: each.kind for name, each in declared.items()}
