"""Files that a run names and that are not there: whether that is a mistake, and what was meant."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lintfit.documents.files import ReadError
from lintfit.documents.model import Document, Kind
from lintfit.documents.shell_elsewhere import is_makefile, is_workflow
from lintfit.frozen import frozen
from lintfit.run.examples import is_example
from lintfit.settings.model import Place
from lintfit.suggest import most_alike, nearest

if TYPE_CHECKING:
    from lintfit.documents.shell_document import Command, ShellDocument
    from lintfit.run.locate import Locator
    from lintfit.sources.launch import Launch

Certainty = Literal["sure", "elsewhere", "open"]
"""``sure``: it is a mistake. ``elsewhere``: it may lie outside of these files. ``open``: nothing can be said."""

_WEAKEST: tuple[Certainty, ...] = ("open", "elsewhere", "sure")

_PLACEHOLDER = re.compile(
    r"[<>{}*?\[\]|$\n]|\.\.\.|path[_/-]?to|(?:^|[/_])your?(?:[/_.-]|$)|your_|x{3}|placeholder|changeme|(?:^|/)path/",
    re.IGNORECASE,
)
"""What a name holds that is to be filled in, or that several files may have."""

_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_ARGUMENT = re.compile(r"\$\{?[1-9@*]")

_READS = frozenset(
    "awk cat chmod diff du echo export file grep head less ls md5sum more printf rm rmdir sbatch set shasum sleep "
    "source stat tail test unset wc which".split()
)
"""Commands that write none of the files that they name (what is redirected aside)."""

_FETCHES = frozenset("7z aws azcopy dvc gcloud gdown gsutil rclone rsync s5cmd scp sftp tar unrar unzip".split())
"""Commands that may bring any file."""

_GIT = frozenset("checkout clone lfs pull reset restore sparse-checkout submodule switch worktree".split())
"""Of git's commands those that may."""

_COPIES = frozenset(("cp", "install", "ln", "mv"))

_CONTAINERS = frozenset(
    "apptainer docker enroot gcloud kubectl modal nerdctl pdsh podman pssh ray shifter singularity sky ssh".split()
)
"""Commands that run another one where there are other files."""

_READING_FLAGS = frozenset("config config_file deepspeed deepspeed_config deepspeed_config_file ds_config".split())
_DUMPS = re.compile(r"dump\(|\.write\(|write_text\(|writelines\(|\.save\(|copy\w*\(")
_CHECKED_OUT = re.compile(r"working-directory|repository\s*:|^\s*path\s*:", re.MULTILINE)
_MOST_NAMES = 2000
"""Files of a folder that are compared with a name."""
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

    @property
    def reason(self) -> str:
        """Why the run's memory is not known."""
        return f"{self.what} ({self.name}, which was not found)"


def missing(what: str, name: str, place: Place | None, locator: Locator, beside: Missing | None = None) -> Missing:
    """What can be said of a file that ``locator`` did not find.

    ``beside`` is the script of the same launch, where that is missing, too: of what belongs to a script that lies
    elsewhere no more can be said than of the script.
    """
    certainty = _certainty(name, place, locator)
    if beside is not None:
        certainty = min(certainty, beside.certainty, key=_WEAKEST.index)
    return Missing(what, name, place, certainty, _meant(name, locator) if certainty != "open" else None)


def _certainty(name: str, place: Place | None, locator: Locator) -> Certainty:
    launch = locator.launch
    if (
        "://" in name
        or posixpath.basename(name).startswith(".")
        or _PLACEHOLDER.search(name)
        or _may_be_made(name, place, locator)
    ):
        return "open"
    if launch is not None and (_is_lost(launch) or (place is not None and _is_given(launch, place))):
        return "open"
    if name.startswith(("/", "~")) or Path(name).is_absolute() or is_example(name):
        return "elsewhere"
    if (launch is not None and _in_container(launch)) or _leads_out(name, locator):
        return "elsewhere"
    return "sure"


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
    return any(posixpath.basename(word.text) in _CONTAINERS for word in launch.invocation.prefix)


def _leads_out(name: str, locator: Locator) -> bool:
    """Whether a name leads out of the tree, or the launch script into a folder that is not in it."""
    root = locator.workspace.root
    entered = locator.launch.command.folder if locator.launch is not None else "."
    if entered != "." and not any((root / base).is_dir() for base in locator.entered()):
        return True
    return not _plain(root / locator.folder / entered / name).is_relative_to(_top(locator))


def _top(locator: Locator) -> Path:
    """The folder that holds the tree: that of the repository, else the one that lintfit runs in or looks at."""
    root, folder = locator.workspace.root, _plain(locator.workspace.root / locator.folder)
    repository = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    return repository or (root if folder.is_relative_to(root) else folder)


def _plain(path: Path) -> Path:
    return Path(os.path.normpath(path))


def _may_be_made(name: str, place: Place | None, locator: Locator) -> bool:
    """Whether something that is seen to run, or the file that names it, may write the file first."""
    document = place.document if place is not None else None
    launch = locator.launch
    if document is not None and document.kind is Kind.PYTHON and _dumps(document, name, named=2):
        return True
    if launch is None:
        return False
    script = locator.find(launch.script) if launch.script else None
    return _made_by_launcher(launch, name, locator) or (script is not None and _writes(script, name, locator))


def _made_by_launcher(launch: Launch, name: str, locator: Locator) -> bool:
    document, text = launch.document, launch.document.text
    base = posixpath.basename(name)
    if any(_same(written, name) for written in (*document.redirected, *(file.name for file in document.files))):
        return True
    if re.search(rf"(?:\[|\btest)\s+(?:!\s+)?-[efrs]\s+[^\]\n]*{re.escape(base)}", text):
        return True  # the script itself reckons with its absence
    if is_makefile(document.path) and re.search(rf"^[^\t#=\n]*{re.escape(base)}[^=\n]*:", text, re.MULTILINE):
        return True
    return any(_brings(command, name, launch, locator) for command in _above(document, launch))


def _above(document: ShellDocument, launch: Launch) -> Iterator[Command]:
    return (command for command in document.commands if command.span.start < launch.place.span.start)


def _brings(command: Command, name: str, launch: Launch, locator: Locator) -> bool:
    """Whether a command may make a file of this name."""
    words = [word.text for word in command.words]
    program = posixpath.basename(words[0])
    if program == "sudo" and len(words) > 1:
        words, program = words[1:], posixpath.basename(words[1])
    if program in _READS:
        return False
    if program in _FETCHES:
        return True
    if program == "git":
        return _by_git(words, posixpath.normpath(posixpath.join(launch.command.folder, name)))
    if program in _COPIES:
        return any(_same(word, name) or _covers(word, name) for word in words[1:])
    return _by_program(command, name) or any(_writes(Path(word), name, locator) for word in words)


def _by_git(words: list[str], path: str) -> bool:
    action = next((word for word in words[1:] if not word.startswith("-")), "")
    if action != "clone":
        return action in _GIT
    given = [word for word in words[words.index(action) + 1 :] if not word.startswith("-")]
    if not given or any("$" in word for word in given[-1:]):
        return True
    folder = given[-1] if len(given) > 1 and "://" not in given[-1] else posixpath.basename(given[-1].rstrip("/"))
    folder = posixpath.normpath(folder.removesuffix(".git"))
    return folder == "." or path.startswith(f"{folder}/") or f"/{folder}/" in path


def _by_program(command: Command, name: str) -> bool:
    """Whether a program is handed the name, other than to read it: a launch line that names it, too, needs it."""
    from lintfit.sources.command_line import take_apart
    from lintfit.sources.training_commands import trains

    invocation = take_apart(command.words)
    if invocation is None:
        return any(_same(word.text, name) for word in command.words)
    if trains(invocation) is True:
        return False
    reads = {id(word) for option in invocation.arguments if option.name in _READING_FLAGS for word in option.words}
    own = invocation.script
    return any(_same(word.text, name) for word in command.words if word is not own and id(word) not in reads)


def _same(word: str, name: str) -> bool:
    """Whether a word of a command names the file, by its own name at least."""
    base = posixpath.basename(name)
    found = posixpath.basename(word.rpartition("=")[2])
    return found == base or ("*" in found and fnmatch.fnmatchcase(base, found))


def _covers(word: str, name: str) -> bool:
    """Whether a word names a folder that holds the file."""
    folder = posixpath.normpath(word)
    return folder == "." or posixpath.normpath(name).startswith(f"{folder}/")


def _writes(path: Path, name: str, locator: Locator) -> bool:
    """Whether a script of the tree speaks of the file and writes files."""
    if path.suffix not in (".py", ".sh", ".bash") or "$" in str(path):
        return False
    found = locator.find(path.as_posix())
    try:
        document = locator.workspace.file(found) if found is not None else None
    except ReadError:
        return False
    return document is not None and _speaks(document.text, name, 1, python=path.suffix == ".py")


def _dumps(document: Document, name: str, named: int) -> bool:
    return _speaks(document.text, name, named, python=True)


def _speaks(text: str, name: str, times: int, python: bool) -> bool:
    return text.count(posixpath.basename(name)) >= times and (not python or _DUMPS.search(text) is not None)


def _meant(name: str, locator: Locator) -> str | None:
    """A file of a similar name in the folder that the name leads to, as it would be named there."""
    path = Path(name)
    if path.is_absolute() or name.startswith("~"):
        return None
    for base in _near(locator):
        folder = base / path.parent
        try:
            entries = list(islice(folder.iterdir(), _MOST_NAMES))
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
        below = (Path(each.name) for each in sorted(base.glob("*/")) if not each.name.startswith("."))
        for folder in (*path.parent.parents, *islice(below, _MOST_NAMES)):
            if folder != path.parent and locator.workspace.exists(base / folder / path.name):
                return (folder / path.name).as_posix()
    return None


def _near(locator: Locator) -> list[Path]:
    """The folders within the tree that a name may be meant from."""
    top = _top(locator)
    bases = (_plain(locator.workspace.root / base) for base in locator.bases())
    return [base for base in dict.fromkeys(bases) if base.is_relative_to(top)]
