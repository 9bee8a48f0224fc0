"""The arguments and imports that date a script: only some versions of a library have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.documents.model import DataDocument
from lintfit.documents.workspace import Workspace
from lintfit.run.model import Run
from lintfit.versions import FLOOR, Versions, before

if TYPE_CHECKING:
    from lintfit.catalog.dating import Taken
    from lintfit.documents.python_reader import PythonDocument
    from lintfit.sources.script.model import Argument, Call
    from lintfit.sources.script.source import ScriptSource

_LIBRARIES = ("transformers.", "trl.")


def dated_by(run: Run, versions: Versions, workspace: Workspace) -> Versions:
    """The versions with the bounds that the run's script or recipe sets to those that nothing states.

    A bound that would leave no version counts for nothing: then the argument is a mistake, and no date.
    """
    found = _new_enough(run, versions)
    for taken, called in (*_dates(run), *_in_modules(run), *_in_files(run), *_in_readers(run, workspace)):
        source = f"{called} in {run.script.document.path.as_posix()}" if run.script is not None else called
        if taken.gone is not None and _newer_than(found, taken.library, taken.gone):
            found = found.with_bound(taken.library, taken.gone, source)
        if taken.first is not None and _older_than(found, taken.library, taken.first):
            found = found.with_floor(taken.library, taken.first, source)
    return _handed_more(run, found)


def _new_enough(run: Run, versions: Versions) -> Versions:
    """The same with a TRL that has the script's trainer at all, where the project's files state an older one: a script
    cannot import it from that, so that a lock file which says so was not what it is run with."""
    trainer = run.script.facts.trainer if run.script is not None else None
    if trainer is None or not trainer.function.startswith("trl.") or "trl" in run.options.versions:
        return versions
    from lintfit.catalog.dating import NEW_TRAINERS

    taken = NEW_TRAINERS.get(trainer.function.rpartition(".")[2])
    stated = versions.get("trl")
    if taken is None or taken.first is None or before(stated, taken.first) is not True:
        return versions
    return versions.without("trl").with_floor("trl", taken.first, f"by {trainer.name}")


def _handed_more(run: Run, versions: Versions) -> Versions:
    """The same with a transformers that a trainer of an old TRL can be run by."""
    trainer = run.script.facts.trainer if run.script is not None else None
    if trainer is None or not trainer.function.startswith("trl."):
        return versions
    from lintfit.catalog.dating import COUNTS_FROM, COUNTS_NO_TOKENS, HANDED_FROM

    old = trainer.name in COUNTS_NO_TOKENS and before(versions.get("trl"), COUNTS_FROM) is True
    if not old or not _newer_than(versions, "transformers", HANDED_FROM):
        return versions
    return versions.with_bound("transformers", HANDED_FROM, f"by {trainer.name} of TRL before {COUNTS_FROM}")


def _newer_than(versions: Versions, library: str, gone: str) -> bool:
    """Whether a library may be of this version or later, and also earlier."""
    known, floor = versions.get(library), versions.get(library + FLOOR)
    if known is not None and (not known.startswith("<") or before(known, gone) is True):
        return False
    return floor is None or before(floor, gone) is True


def _older_than(versions: Versions, library: str, first: str) -> bool:
    """Whether a library may be older than this version, and also as new."""
    known, floor = versions.get(library), versions.get(library + FLOOR)
    if known is not None and (not known.startswith("<") or before(known, first) is True):
        return False
    return floor is None or before(floor, first) is True


def _dates(run: Run) -> Iterator[tuple[Taken, str]]:
    """What says how old or new the libraries of a run's script are, upper bounds first."""
    if run.script is None:
        return
    from lintfit.catalog.dating import (
        ARGUMENTS_OF_TRANSFORMERS,
        taken_by_config,
        taken_by_load,
        taken_by_trainer,
    )

    facts = run.script.facts
    found = [*_imported(run.script.document)]
    for load in facts.loads:
        if load.name != "from_pretrained" or load.taken is False or not load.function.startswith("transformers."):
            continue
        for argument in _written(load):
            gone = taken_by_load(argument.name)
            if gone is not None:
                found.append((gone, f"{load.name}({argument.name}=…)"))
    for call, dates in ((facts.trainer, taken_by_trainer), (facts.training_arguments, taken_by_config)):
        if call is None or call.taken is False or not call.function.startswith(_LIBRARIES):
            continue
        own = _declared_beside(run.script) if call is facts.training_arguments else frozenset()
        for argument in _written(call):
            taken = dates(call.name, argument.name)
            if taken is not None and argument.name not in own:
                found.append((taken, f"{call.name}({argument.name}=…)"))
    trainer, made = facts.trainer, facts.training_arguments
    if trainer is not None and trainer.function.startswith("trl.") and trainer.taken is not False and made is not None:
        first = ARGUMENTS_OF_TRANSFORMERS.get(trainer.name)
        if first is not None and made.function in ("transformers.TrainingArguments", "TrainingArguments"):
            found.append((first, f"{trainer.name}(args=TrainingArguments(…))"))
    yield from sorted(found, key=lambda date: date[0].gone is None)


def _declared_beside(script: ScriptSource) -> frozenset[str]:
    """What a script's own dataclasses have that a parser fills beside the library's: who sets it on the arguments of
    that then (``args.max_seq_length = own.max_seq_length``) may do so in any release."""
    from lintfit.sources.script.interpreter.models import is_arguments

    parsed = [made for made in script.walk.parsed if not is_arguments(made.library)]
    return frozenset(name for made in parsed for name in made.attributes) if script.facts.parse_call else frozenset()


def _in_modules(run: Run) -> Iterator[tuple[Taken, str]]:
    """What the modules import that a run's script has beside it, each named as its own."""
    if run.script is None:
        return
    from lintfit.documents.python_reader import PythonDocument

    for document in run.documents:
        if isinstance(document, PythonDocument) and document is not run.script.document:
            yield from ((taken, f"{called} ({document.path.as_posix()})") for taken, called in _imported(document))


def _imported(document: PythonDocument) -> Iterator[tuple[Taken, str]]:
    """The names that a module takes from packages which only some releases have."""
    from lintfit.catalog.dating import IMPORTS
    from lintfit.documents.python_imports import imported

    if any(name in document.text for _, name in IMPORTS):  # a text is searched faster than it is parsed
        names = (each for each in dict.fromkeys(imported(document)) if each in IMPORTS)
        yield from ((IMPORTS[package, name], f"{name} of {package}") for package, name in names)


def _in_files(run: Run) -> Iterator[tuple[Taken, str]]:
    """What is stated beside ``use_vllm`` in a file of TRL's arguments, or as flags, and in a recipe of SFT, upper
    bounds first: fields that the studied versions of the config no longer have are among it."""
    recipe, trainer = run.recipe, run.value("trainer")
    if recipe is not None and recipe.dialect != "trl":
        return
    if trainer == "grpo":
        config, setting = "GRPOConfig", run.settings.get("use_vllm")
    elif trainer == "causal-lm" and recipe is not None:
        config, setting = "SFTConfig", run.settings.get("seq_len")
    else:
        return
    place = setting.provenance.place if setting is not None else None
    if place is None:
        return
    from lintfit.catalog.dating import FIELDS

    names: list[str] = []
    if isinstance(place.document, DataDocument) and place.document.root is not None:
        names = [entry.key for entry in place.document.root.entries]
    elif run.launch is not None and place.document is run.launch.document:
        names = [flag.name for flag in run.launch.flags]
    found = [(FIELDS[config, name], name) for name in names if (config, name) in FIELDS]
    yield from sorted(found, key=lambda date: date[0].gone is None)


def _in_readers(run: Run, workspace: Workspace) -> Iterator[tuple[Taken, str]]:
    """What the tree's script for TRL's recipes reads of them, where a recipe does not say what starts it."""
    launch, recipe = run.launch, run.recipe
    if launch is not None or recipe is None or recipe.dialect != "trl":
        return
    from lintfit.catalog.dating import OF_MODEL_CONFIG
    from lintfit.run.key_reads import key_reads

    for name, taken in OF_MODEL_CONFIG.items():
        path = key_reads(workspace).of_model_config(recipe.document.path, name)
        if path is not None:
            yield taken, f"{name} of ModelConfig in {path.as_posix()}"


def _written(call: Call) -> Iterator[Argument]:
    """The arguments that somebody wrote: in the call, or as flags that fill it."""
    return (argument for argument in call.arguments.values() if argument.provenance.kind != "default")
