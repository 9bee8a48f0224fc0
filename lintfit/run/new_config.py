"""A DeepSpeed JSON that a plan makes: for a run that had none, or for the ZeRO of an Accelerate YAML."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lintfit.documents import door
from lintfit.documents.model import Edit, FileEdit, Kind, Span
from lintfit.errors import CannotWrite
from lintfit.run.engine_location import has_trainer, zero_in_launcher_file
from lintfit.run.model import Run
from lintfit.run.naming import working_directory
from lintfit.settings.model import AUTO
from lintfit.settings.registry import ZERO


def new_config_file(run: Run, zero: Mapping[str, Any]) -> tuple[FileEdit, ...] | None:
    """A DeepSpeed JSON and the argument that names it, as the process finds it from where it starts.

    ``zero`` may say in which 16-bit type the plan trains, and in which ``folder`` the tree has such files.
    """
    from lintfit.sources.deepspeed import new_config

    author = run.training
    if author is None:
        return None
    half = zero.get("mixed_precision") or (run.spec.mixed_precision if run.spec is not None else None)
    home, placed = working_directory(run), _beside_absolute(run)
    folder = placed[0] if placed is not None else zero.get("folder", home)
    zero = {name: zero[name] for name in ZERO}
    brought = run.recipe.write("packaged_deepspeed", zero) if run.recipe is not None else None
    if brought is not None:
        return brought
    stated = dict(zero)
    if half == "fp16":
        stated["fp16"] = AUTO
    if "nvme" in stated.values():
        stated["nvme_path"] = run.nvme_path
    path = _free_name(folder, zero)
    name = placed[1] / path.name if placed is not None else Path(os.path.relpath(path, home))
    named = author.write("deepspeed", name.as_posix())
    if named is None:
        return None
    library = next((each for each in named if _is_library(each, run)), None)
    if library is not None:
        raise CannotWrite(f"{library.path.as_posix()} makes the arguments for all that import it: no place for a path")
    return (FileEdit(path, Edit(Span(0, 0), new_config(stated))), *named)


def _beside_absolute(run: Run) -> tuple[Path, Path] | None:
    """The folder of an Accelerate YAML that the launch names by an absolute path, in the tree and as it is named there:
    from which folder such a launch is started, and where a relative path would lead, nobody can tell."""
    stated = run.launch.settings.get("accelerate_config") if run.launch is not None else None
    if run.accelerate is None or stated is None or not isinstance(stated.value, str):
        return None
    named, document = Path(stated.value), run.accelerate.document
    return (document.path.parent, named.parent) if named.is_absolute() and named.name == document.path.name else None


def _is_library(edit: FileEdit, run: Run) -> bool:
    """Whether an edit is in a module that the script of a launch imports from another folder, as others may."""
    document = edit.document
    if document is None or document.kind is not Kind.PYTHON or run.script is None or run.launch is None:
        return False
    return document.path.parent != run.script.document.path.parent


def handed_over(run: Run, zero: Mapping[str, Any]) -> tuple[FileEdit, ...] | None:
    """The ZeRO of an Accelerate YAML moved into a DeepSpeed JSON beside it, which has keys for what the YAML has none.

    Nothing changes by the move: what the YAML states stands in the JSON, what it leaves open stays open. ``zero`` is
    what the plan makes of stage and offload, for the name of the file.
    """
    if run.deepspeed is not None:
        return ()
    yaml = run.accelerate
    if yaml is None or yaml.engine != "deepspeed" or not zero_in_launcher_file(run):
        return None
    precision = run.value("mixed_precision")
    halved = precision in ("bf16", "fp16")
    if run.training is not None and has_trainer(run) and halved:
        said = run.training.settings.get(precision)
        if said is None or said.value is not True:
            return run.training.write(precision, True)
    from lintfit.sources.deepspeed import new_config

    path = _free_name(yaml.document.path.parent, zero)
    named = run.launch.settings.get("accelerate_config") if run.launch is not None else None
    folder = Path(named.value).parent if named is not None and isinstance(named.value, str) else Path()
    handed = yaml.hand_over((folder / path.name).as_posix())
    if handed is None:
        return None
    stated = yaml.stated_of_zero(by_trainer=has_trainer(run))
    block = {precision: AUTO if has_trainer(run) else True} if halved else {}
    return (FileEdit(path, Edit(Span(0, 0), new_config({**block, **stated}, "deepspeed"))), *handed)


def _free_name(folder: Path, zero: Mapping[str, Any]) -> Path:
    offload = {"cpu": "_offload", "nvme": "_nvme"}.get(zero.get("offload_optimizer", ""), "")
    stem = f"ds_zero{zero['zero_stage']}{offload}"
    path, number = folder / f"{stem}.json", 2
    while door.exists(path):
        path, number = folder / f"{stem}_{number}.json", number + 1
    return path
