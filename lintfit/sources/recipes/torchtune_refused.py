"""What torchtune refuses of a launch line, and the keys of a config that its recipe passes over.

``torchtune/config/_parse.py`` (0.6.1) takes no flag but ``--config``, and no word without ``=``. OmegaConf has no
schema: a key at the top that the recipe's code does not ask for does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.catalog.torchtune import Recipe
from lintfit.settings.model import Place
from lintfit.sources.flag_grammars.model import Refused
from lintfit.sources.flag_grammars.options import Refusal
from lintfit.sources.recipes.torchtune_keys import place_of, references, words
from lintfit.suggest import nearest

if TYPE_CHECKING:
    from lintfit.documents.model import DataDocument
    from lintfit.sources.launchers.launch import Launch

_PARSER = "tune run"


def refused(launch: Launch, recipe: Recipe | None, config: DataDocument | None) -> Iterator[Refused]:
    """The flags and words that stop the run, and the keys that do nothing."""
    if recipe is None:
        return
    for option in launch.invocation.arguments:
        written = option.flag.text.partition("=")[0]
        if option.name != "config" and written.startswith("--") and not option.flag.unknown:
            error = f"Additional flag arguments not supported: ['{option.flag.text}']. Please use --config or key=value"
            yield Refused(place_of(launch, option.flag), written, _PARSER, Refusal(f"{error} overrides"))
    for word in words(launch):
        if word.value is not None and "=" not in word.value and not word.value.startswith("~"):
            error = f"Command-line overrides must be in the form of key=value, got {word.value}"
            yield Refused(place_of(launch, word), word.value, _PARSER, Refusal(error))
    if config is not None:
        yield from _ignored(recipe, config)
        yield from _idle(launch, recipe, config)


def _ignored(recipe: Recipe, config: DataDocument) -> Iterator[Refused]:
    """Keys that decide memory in somebody's mind, and that no version of the recipe reads."""
    root, used = config.root, references(config.text)
    known = recipe.keys | recipe.elsewhere
    for entry in root.entries if root is not None else ():
        if entry.key in known or entry.key in used or _is_off(entry.value.plain()):
            continue
        meant = nearest(entry.key, known - {each.key for each in root.entries}) if root is not None else None
        refusal = Refusal("the recipe does not read this key", meant, (entry.key,), plain=meant is None)
        found = Refused(Place(config, entry.key_span), entry.key, "the recipe", refusal, key=True, ignored=True)
        if meant is not None or Refused(found.place, found.name, found.parser, Refusal("")).decides:
            yield found


def _idle(launch: Launch, recipe: Recipe, config: DataDocument) -> Iterator[Refused]:
    """Overrides of keys that neither the recipe nor the config reads (``checkpoint_dir=…`` for the checkpointer's)."""
    known, used = recipe.keys | recipe.elsewhere, references(config.text)
    for given in launch.overrides:
        top = given.name.partition(".")[0]
        if top in known or top in used or given.doubtful:
            continue
        meant = nearest(top, known)
        inner = next((f"{key}.{top}" for key in _COMPONENTS if config.root and config.root.get(key, top)), None)
        refusal = Refusal("the recipe does not read this key", meant or inner, (given.name,), plain=meant is None)
        yield Refused(given.place, given.name, "the recipe", refusal, key=True, ignored=True)


_COMPONENTS = ("checkpointer", "model", "tokenizer", "dataset", "optimizer")
"""Sections in which a key is looked for that was given without its section."""


def _is_off(value: object) -> bool:
    """Whether a value asks for nothing, so that nothing is lost where it is not read."""
    if isinstance(value, dict):
        return all(_is_off(each) for each in value.values())
    return value in (None, False, "") or (type(value) is int and value in (0, 1))
