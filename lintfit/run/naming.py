"""Where a run names its config files, and the edits that make it name another one beside."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents import door
from lintfit.documents.model import DataDocument, FileEdit
from lintfit.documents.paths import resolved
from lintfit.documents.shell_computed import in_variable
from lintfit.run.lacking import named_recipes
from lintfit.run.model import Run
from lintfit.sources.data_writer import edits

if TYPE_CHECKING:
    from lintfit.sources.launchers.flags import Flag

_IN_YAML = ("deepspeed_config", "deepspeed_config_file")


def working_directory(run: Run) -> Path:
    """The folder that a run's process is started in, from which its relative names lead: where the name of the script
    or recipe on the launch line begins. A recipe that nothing launches is named from the top of its repository, or from
    where lintfit runs in it."""
    launch, document = run.launch, run.recipe.document if run.recipe is not None else None
    if document is None or document.path == Path():
        return run.base
    if launch is None:
        return _top(document.path.parent)
    for name, _ in named_recipes(launch):
        parts = Path(name).parts
        if ".." not in parts and document.path.parts[-len(parts) :] == parts:
            return Path(*document.path.parts[: -len(parts)])
    return run.base


def _top(folder: Path) -> Path:
    """The top of a folder's repository, as a path from here; here itself, where that is in it, or there is none."""
    here, top = Path.cwd(), door.repository_of(resolved(folder))
    return Path() if top is None or here.is_relative_to(top) else Path(os.path.relpath(top, here))


def leads_to(run: Run, path: Path) -> bool:
    """Whether the DeepSpeed file that a run names by a relative path is found there from where its process starts.

    Who reads a tree looks for files in folders around the launch, too, in which no process does.
    """
    told = (run.settings.get(name) for name in ("deepspeed", "deepspeed_config_file"))
    named = next((each.value for each in told if each is not None and isinstance(each.value, str)), None)
    if named is not None and Path(named).is_absolute():
        return True
    if _starts_elsewhere(run, path):
        return False
    if named is None:
        return True
    return os.path.normpath(working_directory(run) / named) == os.path.normpath(path)


def _starts_elsewhere(run: Run, path: Path) -> bool:
    """Whether the launch goes to a folder first that is not here, as far as can be told (``cd /data/LLaMA-Factory``):
    nothing but ``path`` is found from there, and the folder that stands in for it is called otherwise."""
    launch = run.launch
    entered = Path(os.path.normpath(launch.command.folder)) if launch is not None else Path()
    if launch is None or entered.name in ("", ".."):
        return False
    found = {document.path for document in run.documents} - {launch.document.path, path}
    return not found and resolved(run.base).name != entered.name


def pointed_at(run: Run, document: DataDocument, name: str) -> tuple[FileEdit, ...] | None:
    """The edits that make a run read another file, by its name from this one's folder; None where nobody names this."""
    if run.launch is not None:
        named = [_named_by(flag, name) for flag in _naming(run.launch.flags, document)]
        named += [
            run.launch.set_option(option, _beside(given.value, name))
            for option, given in run.launch.invocation.options.items()
            if given.value is not None and _is(given.value, document)
        ]
        if named:
            return None if None in named else _together([edit for each in named for edit in each or ()])
    yaml = run.accelerate.document if run.accelerate is not None else None
    stated = yaml.root.get(*_IN_YAML) if yaml is not None and yaml.root is not None else None
    if yaml is not None and stated is not None and isinstance(stated.value, str) and _is(stated.value, document):
        return edits(yaml, {_IN_YAML: _beside(stated.value, name)})
    handed = run.training.settings.get("deepspeed") if run.training is not None else None
    if run.training is None or handed is None or not isinstance(handed.value, str) or not _is(handed.value, document):
        return None
    return run.training.write("deepspeed", _beside(handed.value, name))


def _named_by(flag: Flag, name: str) -> tuple[FileEdit, ...] | None:
    assert flag.value is not None
    return flag.write(_beside(flag.value, name)) if flag.write is not None else None


def _together(found: list[FileEdit]) -> tuple[FileEdit, ...]:
    """The edits; one where the variable is set that all of them stand in the place of."""
    document = found[0].document if found else None
    if document is None or len(found) < 2 or any(each.document is not document for each in found):
        return tuple(found)
    edit = in_variable(document.text, [each.edit for each in found])
    return (FileEdit(document.path, edit, document),) if edit is not None else tuple(found)


def _naming(flags: Iterable[Flag], document: DataDocument) -> list[Flag]:
    return [flag for flag in flags if flag.value is not None and _is(flag.value, document)]


def _is(named: str, document: DataDocument) -> bool:
    return named.rpartition("/")[2] == document.path.name


def _beside(named: str, name: str) -> str:
    """A file's path with another name, as it was spelled."""
    folder, slash, _ = named.rpartition("/")
    while name.startswith("../") and folder not in ("", ".", "..") and not folder.endswith(("/..", "}")):
        folder, slash, _ = folder.rpartition("/")
        name = name.removeprefix("../")
    return f"{folder}{slash}{name}"
