"""Where the files that a launch line or a script names are: here, above, or at the same place of another machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents import door
from lintfit.documents.jobs.kinds import kind_of_job
from lintfit.documents.markdown import is_page
from lintfit.documents.paths import is_below, resolved
from lintfit.documents.placeholders import is_to_fill_in
from lintfit.documents.workspace import Workspace

if TYPE_CHECKING:
    from lintfit.documents.model import Document
    from lintfit.sources.launchers.launch import Launch


_MOST_FOLDERS = 500
"""Entries of a folder among which one is looked for that a launch may be made in."""
_DEEP = 4
"""Parts of a folder's path from which on the one above it may be a project: ``/`` and ``/home/me`` are none."""
_CONFIGS = (".json", ".yaml", ".yml")


def is_documented(document: Document) -> bool:
    """Whether a launch stands in a page, a docstring or a job, which do not say in which folder of which checkout."""
    path = document.path
    return is_page(path) or path.suffix == ".py" or kind_of_job(path, document.text) is not None


class Locator:
    """Finds named files from the folder of a run's first file (``start``) outwards.

    ``base`` is the folder that the run's relative names are meant from, once its script was found.
    """

    def __init__(self, start: Path, workspace: Workspace, named: Sequence[Path] = ()) -> None:
        self.folder, self.workspace = start.parent, workspace
        self._named = tuple(resolved(workspace.root / path) for path in named)
        self.outside: set[str] = set()
        """Names that led to what the user has not asked about."""
        self.base = start.parent
        self.launch: Launch | None = None

    def find(self, name: str) -> Path | None:
        """A file that a launch line or script names: from the launch file's folder or one above it.

        Whoever wrote the tree need not be let read what lies elsewhere, which a report would tell of.
        """
        found = self._found(name)
        if found is None or self.is_near(found):
            return found
        self.outside.add(name)
        return None

    def is_near(self, path: Path) -> bool:
        """Whether a file is of the project: below its root or the run's first folder, or named by the user.

        What the user names from elsewhere, with no repository around it, is a project's folder of scripts at most.
        """
        if self.workspace.is_inside(path):
            return True
        file, here = resolved(self.workspace.root / path), resolved(self.workspace.root / self.folder)
        project = here if self.workspace.is_inside(self.folder) or len(here.parts) < _DEEP else here.parent
        return is_below(file, (project,)) or file in self._named

    def _found(self, name: str) -> Path | None:
        path = Path(name)
        if path.is_absolute():
            return path if self.workspace.exists(path) else self._elsewhere(path) or self._mounted(path)
        for base in self.bases():
            candidate = base / path
            if self.workspace.exists(candidate):
                if self.launch is not None and name == self.launch.script:
                    self.base = base
                return self._plain(candidate)
        return self._from_outside(path) or self._back_again(path) or self._anywhere(path)

    def _plain(self, path: Path) -> Path:
        """The path without the folders that it leads up from again, unless a link stands among them."""
        plain = Path(os.path.normpath(path)) if ".." in path.parts else path
        same = plain is path or resolved(self.workspace.root / plain) == resolved(self.workspace.root / path)
        return plain if same else path

    def _from_outside(self, path: Path) -> Path | None:
        """What a relative path leads to that begins above the project: with the folder of the checkout itself, or where
        it is to be filled in (``path_to_project/train.py``, ``<your path>/project/src/train.py``)."""
        first, *rest = path.parts or ("",)
        to_fill_in = first.startswith("<") or is_to_fill_in(first)
        if not self._is_checkout(first) and not to_fill_in and not self._calls_checkout(first):
            return None
        tails = [Path(*rest[start:]) for start in range(max(1, len(rest) - 1) if to_fill_in else 1)] if rest else []
        found = (base / tail for tail in tails for base in self.bases() if self.workspace.exists(base / tail))
        return next(found, None)

    def _back_again(self, path: Path) -> Path | None:
        """What a path leads to that goes out of the root and in again by another folder
        (``scripts/../../project/scripts/train.py``): that is what the checkout is called where it was written."""
        above = (Path(os.path.normpath(base / path)).parts for base in self.bases() if ".." in (base / path).parts)
        tails = (Path(*parts[2:]) for parts in above if parts[:1] == ("..",) != parts[1:2] and len(parts) > 3)
        return next((tail for tail in tails if self.workspace.exists(tail)), None)

    def _calls_checkout(self, folder: str) -> bool:
        """Whether a launch calls the checkout so: its script and its configs are named below this folder, which is not
        here, and without it the script is found."""
        launch = self.launch
        if launch is None or not launch.script or folder in ("", ".", ".."):
            return False
        paths = [Path(name) for name in (launch.script, *_configs_of(launch))]
        if len(paths) < 2 or any(len(path.parts) < 2 or path.parts[0] != folder for path in paths):
            return False
        if any(door.is_folder(self.workspace.root / base / folder) for base in self.bases()):
            return False
        return any(self.workspace.exists(base / Path(*paths[0].parts[1:])) for base in self.bases())

    def _is_checkout(self, folder: str) -> bool:
        """Whether a folder is called like the checkout: as the root is, but for the branch that GitHub puts behind the
        name of an archive's folder, and for an owner before it (``owner__project``)."""
        root = self.workspace.root.name.removesuffix("-main").removesuffix("-master")
        return folder in (root, root.partition("__")[2] or root)

    def _anywhere(self, path: Path) -> Path | None:
        """What is started from a folder that nothing names: the one file below of that name, or path.

        A page or a job does not say in which folder; a shell script may be meant to be run from another than its own,
        where the path of what it starts says from which. Its folder is then where the other names are meant from. Of
        several it is the one from whose folder the launch's other files are found, too.
        """
        launch = self.launch
        if launch is None or launch.script is None or path != Path(launch.script) or self._tells_of_others(launch):
            return None
        tail = path.parts if ".." not in path.parts else path.parts[-1:]
        if len(tail) == 1 and not is_documented(launch.document):
            return None
        found = [each for each in self.workspace.named(path.name) if each.parts[-len(tail) :] == tail]
        if len(found) > 1:
            found = [each for each in found if self._has_the_rest(Path(*each.parts[: -len(tail)]), launch)]
        if len(found) != 1:
            return None
        self.base = self._below(Path(*found[0].parts[: -len(tail)]), launch, path)
        return found[0]

    def _below(self, folder: Path, launch: Launch, path: Path) -> Path:
        """A folder from which a path leads to what lies in ``folder``: of ``../train.py`` one that lies in it, too.

        It is the one that has the launch's other files; where several have them, none, unless all lead up again.
        """
        if path.parts[:-1] != ("..",):
            return folder
        inside = door.listed(self.workspace.root / folder, _MOST_FOLDERS)
        names = sorted(each.name for each in inside if door.is_folder(each) and not each.name.startswith("."))
        named = [name for name in names if self._has_the_rest(folder / name, launch)] or names
        alike = len(named) == 1 or all(value.startswith("..") for value in _configs_of(launch))
        return folder / named[0] if named and alike else folder

    def _has_the_rest(self, base: Path, launch: Launch) -> bool:
        """Whether files that a launch names by a path beside its script are there from a folder, and there are any."""
        named = _configs_of(launch)
        return bool(named) and all(self.workspace.exists(base / value) for value in named)

    def bases(self) -> list[Path]:
        """The folders that a relative name may be meant from, the likeliest first."""
        roots = [] if self.launch is not None and self._tells_of_others(self.launch) else [Path()]
        return list(dict.fromkeys([*self.entered(), self.folder, self.base, *self._above(), *roots]))

    def _tells_of_others(self, launch: Launch) -> bool:
        """Whether a launch stands in a page above the root or beside it, which speaks of no folder within by a name
        alone."""
        if not self.folder.is_absolute() or not is_documented(launch.document):
            return False
        return not resolved(self.folder).is_relative_to(resolved(self.workspace.root))

    def entered(self) -> list[Path]:
        """Where the launch script's own ``cd`` leads, from its folder, one above it or the root.

        A folder of another machine (``/home/me/project/src``) may be the one here whose path ends alike.
        """
        launch = self.launch
        entered = Path(launch.command.folder if launch is not None else ".")
        bases = (*self._above(), Path())
        if not entered.is_absolute():
            return [base / entered for base in bases] if entered != Path() else []
        tails = [Path(*entered.parts[start:]) for start in range(1, len(entered.parts))]
        own = self._above() if launch is not None and self._copies_to(entered, launch) else []
        return [entered, *own, *(base / tail for tail in tails for base in bases)]

    def is_guessed(self, script: Path) -> bool:
        """Whether a launch names no more than a script's name, after a ``cd`` to a folder of another machine that ends
        like none here, and the script was found below the root all the same: another one may be meant."""
        launch = self.launch
        if launch is None or not Path(launch.command.folder).is_absolute() or launch.script != script.name:
            return False
        root = self.workspace.root
        known = (resolved(root / folder) for folder in (Path(), *self.entered()))
        return resolved(root / script.parent) not in known

    def _copies_to(self, folder: Path, launch: Launch) -> bool:
        """Whether the launch script has copied to a folder what it then starts there (``cp -r src /data/project/``):
        that lies beside the script."""
        parts = Path(launch.script or "").parts
        before = (each for each in launch.document.filled if each.start < launch.place.span.start)
        return any(Path(each.name) == folder and Path(each.origin).name in parts for each in before)

    def _above(self) -> list[Path]:
        """The folder of the first file and those above it."""
        folder = self.folder
        return [folder, *folder.parents] if not folder.is_absolute() else [folder, *folder.parents][:5]

    def _elsewhere(self, path: Path) -> Path | None:
        """A file that is named by its place on another machine (``/workspace/project/train/sft.py``).

        It is the one above the launch file whose path ends alike, the file's own folder included.
        """
        parts = path.parts[1:]
        folder = self.folder
        above = folder.parents[:4] if folder.is_absolute() else folder.parents
        bases = dict.fromkeys([folder, *above, Path()])
        for start in range(len(parts) - 1):
            tail = Path(*parts[start:])
            found = next((base / tail for base in bases if self.workspace.exists(base / tail)), None)
            if found is not None:
                return found
        return self._in_checkout(path) or self._side_by_side(path) or self._beside_others(path)

    def _in_checkout(self, path: Path) -> Path | None:
        """A file right in a folder that is called like the checkout (``/home/me/project/train.py``)."""
        here = Path(path.name)
        return here if self._is_checkout(path.parent.name) and self.workspace.exists(here) else None

    def _side_by_side(self, path: Path) -> Path | None:
        """A file beside another that its launch names, too, where both lie in the launch file's folder here, or in one
        above it: the checkout may be called otherwise here."""
        launch = self.launch
        if launch is None:
            return None
        flags = (*launch.launcher_flags, *launch.flags)
        named = {Path(word) for word in (launch.script or "", *(flag.value or "" for flag in flags))}
        beside = [each for each in named if each != path and each.is_absolute() and each.parent == path.parent]
        for folder in dict.fromkeys((*self._above(), Path())) if beside else ():
            here = folder / path.name
            if self.workspace.exists(here) and any(self.workspace.exists(folder / each.name) for each in beside):
                return here
        return None

    def _mounted(self, path: Path) -> Path | None:
        """A file that a job names by its place in a container: the only one of that name among these files, which the
        job mounts there or its image holds."""
        document = self.launch.document if self.launch is not None else None
        if document is None or kind_of_job(document.path, document.text) is None:
            return None
        found = self.workspace.named(path.name)
        return found[0] if len(found) == 1 else None

    def _beside_others(self, path: Path) -> Path | None:
        """A script right in a folder of another machine that other words of its launch name files below.

        ``/home/me/project/train.py --deepspeed /home/me/project/configs/zero2.json``: where the second is, so is the
        first.
        """
        launch = self.launch
        for flag in launch.flags if launch is not None else ():
            named = Path(flag.value or "")
            if not named.is_absolute() or path.parent not in named.parents or named.parent == path.parent:
                continue
            found = self._elsewhere(named)
            below = len(named.relative_to(path.parent).parts)
            if found is not None and self.workspace.exists(found.parents[below - 1] / path.name):
                return found.parents[below - 1] / path.name
        return None


def _configs_of(launch: Launch) -> list[str]:
    """The configs that a launch names by a relative path."""
    values = [flag.value or "" for flag in (*launch.launcher_flags, *launch.flags)]
    return [value for value in values if value.endswith(_CONFIGS) and value[:1] not in "/~"]
