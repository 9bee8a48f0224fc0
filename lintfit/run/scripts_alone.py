"""Whether a tree holds no more than the launch scripts of another checkout."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents import door
from lintfit.documents.files import ReadError
from lintfit.documents.patterns import lazy_pattern
from lintfit.memo import Memo

if TYPE_CHECKING:
    from lintfit.documents.workspace import Workspace
    from lintfit.sources.launchers.launch import Launch

_LEVELS = 4
"""Folders in one another below the tree's own that are looked into."""
_MOST_SCRIPTS = 300
_MOST_CODE = 100
"""Python files of a tree that is taken for one of launch scripts alone: each is looked into."""
_SEVERAL = 2
_STARTS = lazy_pattern(
    r"(?<![\w./-])(?P<launcher>torchrun|deepspeed|accelerate[ \t]+launch|python[\d.]*(?:[ \t]+-m[ \t]+torch\.\S+)?)"
    r"[ \t](?P<words>[^\n;|]*)"
)
_SCRIPT = lazy_pattern(r"(?<!\S)[\"']?(?P<name>[\w./-]+\.py)[\"']?(?!\S)")
_FOLDERS_OF_CHECKOUTS = re.compile(
    r"(?:.*[_-])?(?:scripts?|bash|shell|sh|config(?:s|uration)?|conf|examples?|recipes?|zero\d?|deepspeed|ds)(?:[_-].*)?",
    re.IGNORECASE,
)
"""Names of folders within a project, which none is called itself."""


def is_part_of_another(launch: Launch, top: Path) -> bool:
    """Whether the tree is a folder of the project that a launch is made in: an absolute path of it leads to a folder
    that is not here (``/home/me/project/scripts/zero3.json``) and to a file that lies on top of this tree, and the
    script has a folder of its own that is not here either."""
    first, _, rest = (launch.script or "").removeprefix("./").partition("/")
    if not rest or first in ("", "..") or door.is_folder(top / first):
        return False
    values = (flag.value or "" for flag in (*launch.launcher_flags, *launch.flags))
    return any(_is_from_above(Path(value), top) for value in values if value.startswith("/") and "\n" not in value)


def _is_from_above(named: Path, top: Path) -> bool:
    folder = named.parent.name
    if _FOLDERS_OF_CHECKOUTS.fullmatch(folder) is None or named.suffix not in (".json", ".yaml", ".yml"):
        return False
    return door.is_file(top / named.name) and not door.is_folder(top / folder)


def holds_launch_scripts_alone(workspace: Workspace, top: Path) -> bool:
    """Whether several launch scripts of a tree start Python scripts, none of these is here, and no Python file of the
    tree could be one that trains: the commands are of other people's repositories."""
    found, asked = _OF_WORKSPACES.get(workspace, top, lambda: _noted(workspace, top))
    workspace.ask(asked)
    return found


_OF_WORKSPACES: Memo[tuple[bool, set[Path]]] = Memo(most=16)


def _noted(workspace: Workspace, top: Path) -> tuple[bool, set[Path]]:
    """The answer, with what was asked of the workspace for it."""
    with workspace.asked() as asked:
        return _holds_alone(workspace, top), asked


def _holds_alone(workspace: Workspace, top: Path) -> bool:
    code: list[Path] = []
    shells: list[Path] = []
    for here, folders, names in door.walk(top):
        deeper = len(here.parts) < len(top.parts) + _LEVELS
        folders[:] = [name for name in folders if deeper and not name.startswith(".")]
        code += [here / name for name in names if name.endswith(".py")]
        shells += [here / name for name in names if name.endswith(".sh")]
        if len(code) > _MOST_CODE:
            return False
    if len(shells) < _SEVERAL:
        return False
    there, launching = {path.name for path in code}, 0
    for text in _texts(shells[:_MOST_SCRIPTS], workspace):
        started = [*_started(text)]
        if any(launcher != "python" and script in there for launcher, script in started):
            return False
        launching += any(script not in there for _, script in started)
    return launching >= _SEVERAL and not any(_may_train(text) for text in _texts(code, workspace))


def _texts(paths: Iterable[Path], workspace: Workspace) -> Iterator[str]:
    for path in paths:
        with suppress(ReadError):
            yield workspace.file(path).text


def _started(text: str) -> Iterator[tuple[str, str]]:
    """The launchers of a script's commands with the name of the Python file that each starts."""
    lines = (line for line in text.replace("\\\n", " ").splitlines() if not line.lstrip().startswith("#"))
    for match in _STARTS.finditer("\n".join(lines)):
        script = _SCRIPT.search(match["words"])
        if script is not None:
            plain = re.fullmatch(r"python[\d.]*", match["launcher"]) is not None
            yield "python" if plain else match["launcher"], posixpath.basename(script["name"])


def _may_train(text: str) -> bool:
    from lintfit.sources.script.prefilter import maybe_training_script

    return maybe_training_script(text)
