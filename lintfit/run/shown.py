"""Launches that are only shown: nobody of the project starts them as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lintfit.documents import door
from lintfit.documents.markdown import is_page
from lintfit.documents.model import DataDocument
from lintfit.documents.paths import resolved
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.workspace import Workspace
from lintfit.frozen import word_set
from lintfit.run.model import Run

_PACKAGES = word_set(
    """
    accelerate alignment axolotl colossalai deepspeed fastchat litgpt llamafactory llmtuner lmflow megatron open_r1
    openrlhf peft swift torchtune transformers trl unsloth verl
    """
)
"""Packages of libraries and front ends whose sources projects keep a copy of."""
_INSTALLED_BY = ("setup.py", "pyproject.toml")


_OF_OTHERS = word_set(
    "3rdparty 3rd_party external extern submodules third_party third-party thirdparty vendor vendored"
)
"""Folders of what others have written, of which a project starts nothing but what its own files name."""


_ARCHIVED = lazy_pattern(
    r"(?:^|[\W\d_])(?:archived?|archives|deprecated|obsolete|attic|graveyard)(?:$|[\W_])", re.IGNORECASE
)
"""Names of folders of what a project keeps, and does not start any more (``docs/99_archive``)."""


def only_shown(run: Run, workspace: Workspace, named: bool) -> bool:
    """Whether a launch stands in a branch that does not run as its script is; and, in a file that the user has not
    ``named``, in a folder of others' sources (``third_party``) or of what is kept (``archive``), in a page or a
    docstring of a library of which the project has a copy, among the examples of such a copy, or in the docstring of
    a script that was copied from elsewhere. So does a recipe that code of the tree loads as a template, to write its
    model or its data over: the values that it has are placeholders.

    So is what comes of a script that bears the name of the one that a launch starts elsewhere (:func:`_is_another`)."""
    launch = run.launch
    if _is_another(run):
        return True
    if launch is None and run.recipe is not None and not named:
        return _is_template(run, workspace) or is_example_of_copy(run.origin.path, workspace)
    if launch is None or launch.command.idle or named:
        return launch is not None and launch.command.idle
    path, root = resolved(workspace.root / run.origin.path), resolved(workspace.root)
    names = [folder.name for folder in _below_top(path, root)]
    if any(name.lower() in _OF_OTHERS or _ARCHIVED.search(name) for name in names):
        return True
    if is_example_of_copy(run.origin.path, workspace):
        return True
    if path.suffix == ".py" and launch.script and Path(launch.script).name == path.name:
        return not _leads_to(launch.script, path) or any(_is_copy(folder, root) for folder in _below_top(path, root))
    return is_page(path) and any(_is_library(folder) for folder in _below_top(path, root))


def _is_another(run: Run) -> bool:
    """Whether a launch goes to a folder of another machine, called as the script's here is not, and hands flags to a
    script that takes none: it starts another one of that name."""
    launch, script = run.launch, run.script
    if launch is None or script is None or not launch.flags or script.walk.parses:
        return False
    entered, found = Path(launch.command.folder), script.document.path
    return entered.is_absolute() and launch.script == found.name and entered.name != resolved(found).parent.name


_FILLED_IN = word_set(
    """
    base_model dataset dataset_name dataset_path datasets model model_id model_name model_name_or_path
    """
)
"""Keys of recipes by which they name their model and their data."""


def _is_template(run: Run, workspace: Workspace) -> bool:
    from lintfit.run.key_reads import key_reads

    document = run.recipe.document if run.recipe is not None else None
    root = document.root if isinstance(document, DataDocument) else None
    keys = {entry.key for entry in root.entries} & _FILLED_IN if root is not None else set()
    return bool(keys) and key_reads(workspace).is_template(run.origin.path, keys)


def _leads_to(script: str, path: Path) -> bool:
    """Whether a script's name, with its folders, is this file's from a folder above it, or may be on the machine of
    whoever wrote it down."""
    parts = tuple(part for part in Path(script).parts if part != ".")
    return ".." in parts or script[:1] in ("/", "~", "$") or path.parts[-len(parts) :] == parts


def _below_top(path: Path, root: Path) -> Iterator[Path]:
    """The folders above a file that lie below the top of its repository, or below the root where there is none."""
    top = _top(path.parent, root)
    for folder in path.parents:
        if folder == top or not folder.is_relative_to(top):
            return
        yield folder


def _top(folder: Path, root: Path) -> Path:
    return door.repository_of(folder) or root


def _is_copy(folder: Path, root: Path) -> bool:
    """Whether a folder is a library's package, and not what the repository itself installs."""
    if folder.name not in _PACKAGES or not door.is_file(folder / "__init__.py"):
        return False
    top = _top(folder, root)
    return folder.parent not in (top, top / "src") or not _is_installed(top)


def _is_installed(folder: Path) -> bool:
    return any(door.is_file(folder / name) for name in _INSTALLED_BY)


def is_example_of_copy(path: Path, workspace: Workspace) -> bool:
    """Whether a file lies among the examples of a library's checkout of which the project keeps a copy in a folder."""
    if _EXAMPLES.isdisjoint(path.parts):
        return False
    file, root = resolved(workspace.root / path), resolved(workspace.root)
    return any(
        file.relative_to(folder).parts[0] in _EXAMPLES and _is_library(folder) for folder in _below_top(file, root)
    )


_EXAMPLES = word_set("benchmark benchmarks docker docs examples tests")


def _is_library(folder: Path) -> bool:
    if not _is_installed(folder):
        return False
    return any(door.is_folder(source / name) for source in (folder / "src", folder) for name in sorted(_PACKAGES))
