"""Files that a run names and that are not there: whether that is a mistake, and what was meant."""

from __future__ import annotations

import glob
import os
import posixpath
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lintfit.documents import door
from lintfit.documents.files import ReadError
from lintfit.documents.model import DataDocument
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.placeholders import is_to_fill_in
from lintfit.documents.shell_elsewhere import is_workflow
from lintfit.frozen import frozen, word_set
from lintfit.run.examples import is_example, is_example_recipe, is_of_a_checkout, is_packaged_config
from lintfit.run.gitignore import is_ignored
from lintfit.run.locate import is_documented
from lintfit.run.made import is_told_to_make, may_be_made
from lintfit.run.scripts_alone import holds_launch_scripts_alone, is_part_of_another
from lintfit.settings.model import Place
from lintfit.sources.recipes.forms import front_end_of
from lintfit.sources.recipes.scripts import is_of_front_end
from lintfit.suggest import most_alike, nearest

if TYPE_CHECKING:
    from lintfit.run.locate import Locator
    from lintfit.sources.launchers.launch import Launch

Certainty = Literal["sure", "elsewhere", "open"]
"""``sure``: it is a mistake. ``elsewhere``: it may lie outside of these files. ``open``: nothing can be said."""

_WEAKEST: tuple[Certainty, ...] = ("open", "elsewhere", "sure")

_PLACEHOLDER = lazy_pattern(
    r"[<>{}*?\[\]|$\n]|\.\.\.|path[_/-]?to|(?:^|[/_])your?(?:[/_.-]|$)|your_|x{3}|placeholder|changeme|(?:^|/)path/",
    re.IGNORECASE,
)
"""What a name holds that is to be filled in, or that several files may have."""

_SUBMODULE = lazy_pattern(r"^\s*path\s*=\s*(\S+)", re.MULTILINE)
_LONGEST_LIST = 100_000
"""Bytes of a list of submodules."""

_TEMPLATE = lazy_pattern(r"(?:^|[._-])(?:examples?|templates?)(?:[._-]|$)|\.sample(?:\.|$)", re.IGNORECASE)
"""Names of files that are to be copied and changed (``slurm_example.sbatch``, ``train.sh.template``)."""
_TRAINED = lazy_pattern(r"model|data", re.IGNORECASE)
"""Keys of a recipe that say what is trained, and on what."""


_VARIABLE = lazy_pattern(r"\$\{?([A-Za-z_]\w*)")
_ARGUMENT = lazy_pattern(r"\$\{?[1-9@*]")


_CONTAINERS = word_set(
    """
    apptainer docker enroot gcloud kubectl modal nerdctl pdsh podman pssh ray shifter singularity sky ssh
    """
)
"""Commands that run another one where there are other files."""

_CHECKED_OUT = lazy_pattern(r"working-directory|repository\s*:|^\s*path\s*:", re.MULTILINE)
_MOST_NAMES = 2000
"""Files of a folder that are compared with a name."""
_MOST_LEVELS = 50
"""Folders above a file, as it is named, in which it is looked for."""
_ALIKE = 0.9
"""The share that two longer names have in common."""


@frozen(eq=False)
class Missing:
    """A file that a run names and that is not there. ``what`` says what it is to the run: ``the DeepSpeed config``."""

    what: str
    name: str
    place: Place | None
    certainty: Certainty
    meant: str | None = None
    """The name of a file that is there and may be meant."""
    outside: bool = False
    """Whether it is there, where the user has not asked about anything."""

    @property
    def reason(self) -> str:
        """Why the run's memory is not known."""
        if self.outside:
            return f"{self.what} ({self.name}, which lies outside of what is checked: name it on the command line, too)"
        return f"{self.what} ({self.name}, which was not found)"


def missing(what: str, name: str, place: Place | None, locator: Locator, beside: Missing | None = None) -> Missing:
    """What can be said of a file that ``locator`` did not find.

    ``beside`` is the script of the same launch, where that is missing, too: of what belongs to a script that lies
    elsewhere no more can be said than of the script.
    """
    if name in locator.outside:
        return Missing(what, name, place, "open", outside=True)
    certainty = _certainty(name, place, locator)
    if beside is not None:
        certainty = min(certainty, beside.certainty, key=_WEAKEST.index)
    return Missing(what, name, place, certainty, _meant(name, locator) if certainty != "open" else None)


def _certainty(name: str, place: Place | None, locator: Locator) -> Certainty:
    launch = locator.launch
    if _is_open(name) or may_be_made(name, place, locator):
        return "open"
    if launch is not None and (_is_lost(launch) or (place is not None and _is_given(launch, place))):
        return "open"
    if name.startswith(("/", "~")) or Path(name).is_absolute() or is_example(name):
        return "elsewhere"
    if launch is not None and (is_example_recipe(name, launch.launcher) or _is_of_front_end(name, launch)):
        return "elsewhere"
    packaged = is_packaged_config(name, _front_end(place, launch)) or is_of_a_checkout(name)
    if packaged and not (posixpath.dirname(name) and _has_folder(name, locator)):
        return "elsewhere"
    if (launch is not None and _in_container(launch)) or _leads_out(name, locator) or _in_submodule(locator):
        return "elsewhere"
    if launch is not None and launch.document.path.suffix != ".py" and is_documented(launch.document):
        return "elsewhere"
    if _is_cloned(name, locator) or _is_kept_back(name, locator) or _is_made_by_hand(name, locator):
        return "elsewhere"
    if _is_template(place, launch):
        return "elsewhere"
    if launch is not None and (_is_copied_elsewhere(launch, locator) or _folder_is_to_be_copied(launch, locator)):
        return "elsewhere"
    of_a_folder = "/" in _plain(Path(name)).as_posix() or name.endswith(".py")
    if of_a_folder and _is_below(name, locator):
        return "elsewhere"
    if name.endswith(".py") and "/" not in name and not _has_code(locator):
        return "elsewhere"
    if launch is not None and name == launch.script and _is_for_another_tree(name, launch, locator):
        return "elsewhere"
    return "sure"


def _is_for_another_tree(script: str, launch: Launch, locator: Locator) -> bool:
    """Whether the tree has only the launch scripts of another one, and nothing that the name may be a slip of."""
    top = _top(locator)
    if is_part_of_another(launch, top):
        return True
    return holds_launch_scripts_alone(locator.workspace, top) and _meant(script, locator) is None


def _is_of_front_end(name: str, launch: Launch) -> bool:
    """Whether the script of a launch is one of a front end's checkout, as its flags say."""
    return name == launch.script and is_of_front_end(name, {flag.name for flag in launch.flags})


def _front_end(place: Place | None, launch: Launch | None) -> str | None:
    """The front end whose recipe, or whose command, names a file."""
    document = place.document if place is not None else None
    if isinstance(document, DataDocument):
        return front_end_of(document.text, document.kind)
    return launch.launcher if launch is not None else None


def _has_folder(name: str, locator: Locator) -> bool:
    """Whether the folder that a name leads to is there, so that the file is missing from it."""
    return any(door.is_folder(base / posixpath.dirname(name)) for base in _near(locator))


_DEEPEST = 20
"""Folders of a path that is looked for further down: ``Path.glob`` goes one call deeper for each."""


def _is_below(name: str, locator: Locator) -> bool:
    """Whether a path leads to a file from a folder further down: the launch is meant to be made there."""
    if name.startswith("..") or name.count("/") > _DEEPEST:
        return False
    top, plain = _top(locator), glob.escape(name)
    return any(any(True for _ in islice(door.matching(top, depth + plain), 1)) for depth in ("*/", "*/*/", "*/*/*/"))


def _is_cloned(name: str, locator: Locator) -> bool:
    """Whether a page or a script beside the launch, or above it, has ``git clone`` of a repository that a folder of
    the path is called after: a step before brings it."""
    folders = [re.escape(part) for part in Path(name).parts[:-1] if part not in (".", "..")]
    if not folders:
        return False
    cloned = re.compile(
        rf"git\s+clone\b[^\n]{{0,300}}[/\s](?:{'|'.join(folders)})(?:\.git)?/?(?=[\s\"'`)]|$)", re.MULTILINE
    )
    return any("clone" in text and cloned.search(text) is not None for text in _told(locator))


def _is_copied_elsewhere(launch: Launch, locator: Locator) -> bool:
    """Whether a page or a script beside the launch, or above it, copies the launch's own file into another folder: it
    is run where the copy is, among another project's files."""
    name = launch.document.path.name
    copied = re.compile(rf"\b(?:cp|mv|rsync)\s[^\n]{{0,300}}[/\s\"']{re.escape(name)}[\"']?[ \t]+[^\s;&|]{{0,300}}[/$]")
    return any(name in text and copied.search(text) is not None for text in _told(locator))


def _folder_is_to_be_copied(launch: Launch, locator: Locator) -> bool:
    """Whether a page above the launch says to copy the folder that the launch's file lies in: "Copy scripts from
    `./finetune` to your checkout of MiniCPM"."""
    folder = launch.document.path.parent.name
    if not folder:
        return False
    copied = re.compile(
        rf"^(?!\s*#)[^\n]*\bcopy\b[^\n]*(?:`|\s|\./){re.escape(folder)}/?(?:`|\s)[^\n]*\b(?:in)?to\b",
        re.MULTILINE | re.IGNORECASE,
    )
    return any(folder in text and copied.search(text) is not None for text in _told(locator))


def _is_made_by_hand(name: str, locator: Locator) -> bool:
    """Whether a page or a script beside the launch, or above it, has a command that makes the file: a step before."""
    base = posixpath.basename(name)
    return any(base in text and is_told_to_make(text, name) for text in _told(locator))


def _is_template(place: Place | None, launch: Launch | None) -> bool:
    """Whether what names a file is to be copied and filled in first: by its own name, or a recipe whose model or data
    is a placeholder."""
    document = place.document if place is not None else None
    files = [each.path.name for each in (document, launch.document if launch is not None else None) if each is not None]
    if any(_TEMPLATE.search(name) for name in files):
        return True
    root = document.root if isinstance(document, DataDocument) else None
    if document is None or root is None:
        return False
    told = (entry.value.span for entry in root.entries if _TRAINED.search(str(entry.key)))
    return any(is_to_fill_in(document.slice(span)) for span in told)


def _is_kept_back(name: str, locator: Locator) -> bool:
    """Whether git ignores the file where it is looked for: its author has it and does not hand it on."""
    top = _top(locator)
    return any(is_ignored(_plain(base / name), top) for base in _near(locator))


def _told(locator: Locator) -> Iterator[str]:
    """The texts of pages and scripts in the folders that a name may be meant from."""
    for folder in _near(locator):
        with suppress(OSError):
            for path in door.listed(folder, _MOST_NAMES):
                if path.suffix in (".md", ".sh") or path.name == "Makefile":
                    with suppress(ReadError):
                        yield locator.workspace.file(path).text


def _has_code(locator: Locator) -> bool:
    """Whether a folder that the script may be meant to stand in has Python at all: a copy of launch scripts alone is
    for another repository."""
    return any(any(True for _ in islice(door.matching(folder, "*.py"), 1)) for folder in _near(locator))


def _is_open(name: str) -> bool:
    """Whether a name is none of a file, or not the whole of one: what an empty variable leaves has no stem."""
    if "://" in name or posixpath.basename(name).startswith("."):
        return True
    return _PLACEHOLDER.search(name) is not None or is_to_fill_in(name)


def _in_submodule(locator: Locator) -> bool:
    """Whether the repository has parts that are repositories of their own and are not here: they may hold the file."""
    top = _top(locator)
    listed = top / ".gitmodules"
    if not door.is_file(listed):
        return False
    text = door.read_regular(listed, _LONGEST_LIST).decode("utf-8", "replace")
    folders = (top / path for path in _SUBMODULE.findall(text))
    return any(not door.is_folder(folder) or not door.listed(folder, 1) for folder in folders)


def _is_lost(launch: Launch) -> bool:
    """Whether nobody can tell in which folder a launch line runs."""
    document = launch.document
    if launch.command.lost or any(word.text == "cd" for word in launch.invocation.prefix):
        return True
    if any(directive.key in ("--chdir", "-D") for directive in document.directives):
        return True
    return is_workflow(document.path) and _CHECKED_OUT.search(document.text) is not None


def _is_given(launch: Launch, place: Place) -> bool:
    """Whether the script's own arguments may say the name, which then has its default here (``MODEL="$2"``)."""
    document = launch.document
    if place.document is not document:
        return False
    words = [word for word in launch.command.words if word.span.start <= place.span.start <= word.span.end]
    waiting = [name for word in words for name in _VARIABLE.findall(document.slice(word.at))]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for assigned in re.findall(rf"\b{name}=([^\n]*)", document.text):
            if _ARGUMENT.search(assigned):
                return True
            waiting += _VARIABLE.findall(assigned)
    return False


def _in_container(launch: Launch) -> bool:
    words = [word.text for word in launch.invocation.prefix]
    return any(posixpath.basename(word) in _CONTAINERS or word.startswith("--container-") for word in words)


def _leads_out(name: str, locator: Locator) -> bool:
    """Whether a name leads out of the tree, or the launch script into a folder that is not in it."""
    root = locator.workspace.root
    entered = locator.launch.command.folder if locator.launch is not None else "."
    if entered != "." and not any(door.is_folder(root / base) for base in locator.entered()):
        return True
    start = locator.folder / entered
    if ".." in (parts := Path(name).parts) and parts[0] != "..":
        start = next((base for base in locator.bases() if door.is_folder(root / base / parts[0])), start)
    return not _plain(root / start / name).is_relative_to(_top(locator))


def _top(locator: Locator) -> Path:
    """The folder that holds the tree: that of the repository, else the one that lintfit runs in or looks at."""
    root, folder = locator.workspace.root, _plain(locator.workspace.root / locator.folder)
    return door.repository_of(folder) or (root if folder.is_relative_to(root) else folder)


def _plain(path: Path) -> Path:
    return Path(os.path.normpath(path))


def _meant(name: str, locator: Locator) -> str | None:
    """A file of a similar name in the folder that the name leads to, as it would be named there."""
    path = Path(name)
    if path.is_absolute() or name.startswith("~"):
        return None
    for base in _near(locator):
        folder = base / path.parent
        try:
            entries = door.listed(folder, _MOST_NAMES)
        except OSError:
            continue
        names = sorted(entry.name for entry in entries if entry.suffix == path.suffix)
        found = nearest(path.name, names) or most_alike(path.name, names, _ALIKE)
        if found is not None:
            return (path.parent / found).as_posix()
    return _moved(path, locator)


def _moved(path: Path, locator: Locator) -> str | None:
    """A file of this very name one folder further up or down."""
    for base in _near(locator):
        below = (Path(each.name) for each in sorted(door.matching(base, "*/")) if not each.name.startswith("."))
        for folder in (*islice(path.parent.parents, _MOST_LEVELS), *islice(below, _MOST_NAMES)):
            if folder != path.parent and locator.workspace.exists(base / folder / path.name):
                return (folder / path.name).as_posix()
    return None


def _near(locator: Locator) -> list[Path]:
    """The folders within the tree that a name may be meant from."""
    top = _top(locator)
    bases = (_plain(locator.workspace.root / base) for base in locator.bases())
    return [base for base in dict.fromkeys(bases) if base.is_relative_to(top)]
