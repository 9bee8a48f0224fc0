"""What no launch line starts, and the config that can only be its: the one beside the one script that takes such a
config, that of all other recipes of a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents import door
from lintfit.documents.files import ReadError
from lintfit.documents.model import DataDocument, Document
from lintfit.documents.workspace import Workspace
from lintfit.frozen import word_set
from lintfit.run.discover import SUFFIXES
from lintfit.sources import detect
from lintfit.sources.recipes.forms import front_end_of
from lintfit.sources.script.prefilter import is_test, maybe_training_script, only_defines

if TYPE_CHECKING:
    from lintfit.run.model import Run

_FOLDERS = word_set("""
    accelerate accelerate_config accelerate_configs conf config configs deepspeed deepspeed_config deepspeed_configs
    ds_config ds_configs
    """)
"""Folders beside a script that hold its configs, by their usual names."""

_TAKES: Mapping[detect.Dialect, re.Pattern[str]] = {
    "accelerate": re.compile(r"\bAccelerator\("),
    "deepspeed": re.compile(
        r"[\"']--deepspeed(?:_config)?[\"']|\bdeepspeed\.add_config_arguments\("
        r"|\b(?:HfArgumentParser|TrlParser)\((?=[^\n]{0,300}(?:TrainingArguments|Config\b))"
    ),
}
"""What a script holds that takes a config of the dialect: where it names one itself, that is found without this."""
_SUFFIXES: Mapping[detect.Dialect, frozenset[str]] = {
    "accelerate": frozenset({".yaml", ".yml", ".json"}),
    "deepspeed": frozenset({".json", ".jsonc", ".hjson"}),
}
_CALLED: Mapping[detect.Dialect, str] = {"accelerate": "Accelerate", "deepspeed": "DeepSpeed"}
_MOST = 2000
"""Files of a folder that are looked at."""


class Beside:
    """What lies beside scripts, each folder looked through once for all scripts in it."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._takers: dict[tuple[Path, detect.Dialect], frozenset[str]] = {}
        self._configs: dict[tuple[Path, detect.Dialect], tuple[Path, ...]] = {}

    def config_of(self, script: Document) -> Path | None:
        """The Accelerate file, else the DeepSpeed JSON, that can only be this script's.

        It is the only one of its dialect in the script's folder and the folders of configs below, and no other script
        of the folder takes one. None where there are two of either.
        """
        folder = script.path.parent
        for dialect, takes in _TAKES.items():
            if takes.search(script.text) is None:
                continue
            key = folder, dialect
            if key not in self._takers:
                self._takers[key] = frozenset(_takers(folder, takes, self._workspace))
            if self._takers[key] - {script.path.name}:
                return None
            if key not in self._configs:
                self._configs[key] = tuple(_configs(folder, dialect, self._workspace))
            found = self._configs[key]
            if found:
                return found[0] if len(found) == 1 else None
        return None


def configs_of_folders(runs: Iterable[Run]) -> Mapping[tuple[Path, str], Path]:
    """The Accelerate file that launch lines start all recipes of a folder with, by folder and front end; none for a
    folder of which they differ."""
    found: dict[tuple[Path, str], set[Path | None]] = {}
    for run in runs:
        config, recipes = run.says("recipes", partial(_started_with, run))
        for folder, front_end in recipes:
            found.setdefault((Path(folder), front_end), set()).add(Path(config) if config is not None else None)
    ones = ((folder, next(iter(configs))) for folder, configs in found.items() if len(configs) == 1)
    return {folder: config for folder, config in ones if config is not None}


def _started_with(run: Run) -> tuple[str | None, Sequence[Sequence[str]]]:
    """The Accelerate file of a launch line, and of each recipe that it starts the folder and the front end."""
    if run.launch is None:
        return None, ()
    config = str(run.accelerate.document.path) if run.accelerate is not None else None
    # A script of the tree may read a recipe, which has the arguments of the front end.
    told = [(str(each.path.parent), front_end_of(each.text, each.kind)) for each in run.documents]
    return config, [(folder, front_end) for folder, front_end in told if front_end is not None]


_CONFIG_FLAGS = frozenset({"cfg", "config", "config_file", "config_path"})
"""Flags by which a script takes a recipe; TrlParser has the first of them that is written out."""


class OwnScripts:
    """The scripts of a tree whose launch lines have a variable for the recipe that they train by (``--config $1``).

    A recipe that no line names is most likely for one of them, and not for the command of its front end.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        told = (run.says("takes any recipe", partial(_takes_any_recipe, run)) for run in runs)
        self._scripts = [each for each in told if each is not None]

    def may_start(self, recipe: Run) -> bool:
        """Whether one of them is for a recipe of TRL's: its name has the recipe's trainer, or it has none, and the
        recipe that it trains by unless it is told another lies beside this one or above."""
        asked = recipe.says("trainer of its recipe", partial(_trainer_of, recipe))
        if asked is None:
            return False
        trainer, folder = asked
        for script, usual in self._scripts:
            named = _WORDS_OF_TRL.intersection(re.split(r"[\W_\d]+", script.lower()))
            beside = usual is not None and Path(folder).is_relative_to(usual)
            if trainer in named or (beside and not named):
                return True
        return False


_WORDS_OF_TRL = word_set("dpo grpo kto orpo reward rloo sft")


def _takes_any_recipe(run: Run) -> tuple[str, str | None] | None:
    """The name of the script of the tree that a launch line hands a recipe by a variable, and the folder of the recipe
    that the variable has unless its caller says otherwise."""
    if run.launch is None or run.script is None or run.recipe is not None:
        return None
    document = run.launch.document
    for flag in run.launch.flags:
        if flag.name not in _CONFIG_FLAGS or flag.value is None:
            continue
        at = next((word.at for word in run.launch.command.words if word.text.endswith(flag.value)), None)
        if at is not None and "$" in document.text[at.start : at.end]:
            handed = (each.path.parent for each in run.documents if front_end_of(each.text, each.kind) == "trl")
            return run.script.document.path.stem, next(map(str, handed), None)
    return None


def _trainer_of(run: Run) -> tuple[str, str] | None:
    """The command of TRL's that a recipe is taken for, and its folder; None for another front end's recipe."""
    if run.recipe is None or run.recipe.dialect != "trl":
        return None
    from lintfit.sources.recipes.trl_recipe import TrlRecipe

    return (run.recipe.kind.lower(), str(run.origin.path.parent)) if isinstance(run.recipe, TrlRecipe) else None


def said(config: Document, of_recipe: bool) -> str:
    """That a config was joined to a script, or to a recipe, as an assumption with what makes it sure."""
    dialect = detect.dialect(config) if isinstance(config, DataDocument) else None
    kind = _CALLED[dialect] if dialect is not None else "such"
    only = f"the only {kind} config beside the only script that takes one"
    if of_recipe:
        only = "it starts the other recipes of the folder"
    return f"{config.path.as_posix()} configures the run ({only}; check the line that starts it to be sure)"


def _takers(folder: Path, takes: re.Pattern[str], workspace: Workspace) -> Iterator[str]:
    """The names of the scripts of a folder that take a config."""
    for path in _listed(folder, workspace):
        if path.suffix != ".py":
            continue
        text = _text(path, workspace)
        if takes.search(text) is None or is_test(path.name, text):
            continue
        if maybe_training_script(text) and not defines_only(path, workspace):
            yield path.name


def defines_only(path: Path, workspace: Workspace) -> bool:
    """Whether a script does nothing when it is run (:func:`only_defines`)."""
    return workspace.told(path, "only defines", lambda text: "yes" if only_defines(text) else "") == "yes"


def _configs(folder: Path, dialect: detect.Dialect, workspace: Workspace) -> Iterator[Path]:
    worth = detect.maybe_accelerate if dialect == "accelerate" else detect.maybe_deepspeed
    below = (folder / path.name for path in _listed(folder, workspace) if path.name.lower() in _FOLDERS)
    for here in (folder, *sorted(below)):
        for path in _listed(here, workspace):
            if path.suffix in _SUFFIXES[dialect] and worth(_text(path, workspace)):
                document = workspace.read(path, SUFFIXES[path.suffix])
                if isinstance(document, DataDocument) and detect.dialect(document) == dialect:
                    yield path


def _listed(folder: Path, workspace: Workspace) -> list[Path]:
    """What a folder holds, in order, as it is named from the workspace's root; nothing where that is no folder."""
    try:
        return [folder / path.name for path in sorted(door.listed(workspace.root / folder, _MOST))]
    except OSError:
        return []


def _text(path: Path, workspace: Workspace) -> str:
    try:
        return workspace.file(path).text if workspace.exists(path) else ""
    except ReadError:
        return ""
