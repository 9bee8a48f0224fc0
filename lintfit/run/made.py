"""What may make a file before a launch line needs it: the launch script, a Makefile, a script that it runs, or the
commands of a page that a person follows."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.documents.files import ReadError
from lintfit.documents.model import Kind
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.shell_elsewhere import is_makefile
from lintfit.documents.steps import Steps
from lintfit.frozen import word_set
from lintfit.memo import Memo
from lintfit.settings.model import Place

if TYPE_CHECKING:
    from lintfit.documents.shell_document import Command, ShellDocument
    from lintfit.run.locate import Locator
    from lintfit.sources.launchers.launch import Launch


_READS = word_set("""
    awk cat chmod diff du echo export file grep head less ls md5sum more printf rm rmdir sbatch set shasum sleep source
    stat tail test unset wc which
    """)
"""Commands that write none of the files that they name (what is redirected aside)."""

_FETCHES = word_set("7z aws azcopy dvc gcloud gdown gsutil rclone rsync s5cmd scp sftp tar unrar unzip")
"""Commands that may bring any file."""

_GIT = word_set("checkout clone lfs pull reset restore sparse-checkout submodule switch worktree")
"""Of git's commands those that may."""

_COPIES = word_set("cp install ln mv")

_READING_FLAGS = word_set("config config_file deepspeed deepspeed_config deepspeed_config_file ds_config")
_DUMPS = lazy_pattern(r"dump\(|\.write\(|write_text\(|writelines\(|\.save\(|copy\w*\(")


def may_be_made(name: str, place: Place | None, locator: Locator) -> bool:
    """Whether something that is seen to run, or the file that names it, may write the file first."""
    document = place.document if place is not None else None
    launch = locator.launch
    if document is not None and document.kind is Kind.PYTHON and _speaks(document.text, name, 2, python=True):
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
    if re.search(rf"(?:\[|\btest)\s+(?:!\s+)?-[efrs]\s+[^\]\n]{{0,300}}{re.escape(base)}", text):
        return True  # the script itself reckons with its absence
    if _BY_TEXT.get(document, base, lambda: _by_text(document, base)) < launch.place.span.start:
        return True
    if is_makefile(document.path) and re.search(rf"^[^\t#=\n]*{re.escape(base)}[^=\n]*:", text, re.MULTILINE):
        return True
    brings, asked = _FIRST.get(document, (name, launch.command.folder), lambda: _first(document, name, launch, locator))
    locator.workspace.ask(asked)
    return brings < launch.place.span.start


_HERE = lazy_pattern(r"<<-?[ \t]*['\"\\]?(\w+)")
_SET = lazy_pattern(r"\b(\w+)=[\"']?[^\s\"';&|]*\Z")
_MOST_TEXTS = 50
"""Here-documents of one script that are looked at, and places in it that speak of a file."""
_BEFORE = 300
"""Characters within which the variable stands in front of a file's name that is set to its path."""
_BY_TEXT: Memo[int] = Memo()


def _by_text(document: ShellDocument, base: str) -> int:
    """Where a program in a here-document (``python - <<PY``) stands that writes files and speaks of this one, by its
    name or by a variable that holds it; behind the file's end if none does."""
    text = document.text
    if "<<" in text and base in text:
        names = "|".join({re.escape(base), *(rf"\b{name}\b" for name in _holding(text, base))})
        for found in islice(_HERE.finditer(text), _MOST_TEXTS):
            end = text.find(f"\n{found[1]}", found.end())
            body = text[found.end() : end if end >= 0 else len(text)]
            if _DUMPS.search(body) is not None and re.search(names, body) is not None:
                return found.start()
    return len(text) + 1


def _holding(text: str, base: str) -> Iterator[str]:
    """The variables that are set to a path with this name."""
    for found in islice(re.finditer(re.escape(base), text), _MOST_TEXTS):
        named = _SET.search(text[max(0, found.start() - _BEFORE) : found.start()])
        if named is not None:
            yield named[1]


_FIRST: Memo[tuple[int, set[Path]]] = Memo()
_LEFT: Memo[Steps] = Memo()
_MOST_COMMANDS = 2000
"""Commands of one file that are looked at for what they bring, for all names that are asked for."""


def _first(document: ShellDocument, name: str, launch: Launch, locator: Locator) -> tuple[int, set[Path]]:
    """Where the first command stands that may make a file of this name, behind the file's end if none does; and what
    was asked of the workspace for it."""
    steps = _LEFT.get(document, None, lambda: Steps(_MOST_COMMANDS, "commands"))
    with locator.workspace.asked() as asked:
        start = len(document.text) + 1
        for command in document.commands:
            if not steps.take() or _brings(command, name, launch, locator):
                start = command.span.start
                break
    if steps.taken > _MOST_COMMANDS // 2:  # who asks first may leave nothing for the others
        locator.workspace.ambiguous.add(locator.workspace.located(document.path))
    return start, asked


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
    from lintfit.sources.launchers.command_line import take_apart
    from lintfit.sources.launchers.training_commands import trains

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


@lru_cache(maxsize=64)
def _speaks(text: str, name: str, times: int, python: bool) -> bool:
    return text.count(posixpath.basename(name)) >= times and (not python or _DUMPS.search(text) is not None)


_ENDS = lazy_pattern(r"[\n`;|]|&&")
_PROMPT = " \t>$%#*-"
"""What stands in front of a command on a page's line: a prompt, a quotation, a point of a list."""
_NAMES_OUTPUT = {
    "accelerate": word_set("--config_file --config-file"),
    "curl": word_set("-o --output"),
    "wget": word_set("-O --output-document"),
}
"""Commands that write the file that an option names; ``accelerate`` does with ``config`` alone (its command
``accelerate launch`` reads it)."""


@lru_cache(maxsize=64)
def is_told_to_make(text: str, name: str) -> bool:
    """Whether a command of a page or a script plainly makes the file: ``accelerate config --config_file NAME``,
    ``cp template NAME``, ``… > NAME``, ``tee NAME``, ``wget -O NAME``."""
    path = _without_dots(name)
    base = posixpath.basename(path)
    commands = _ENDS.split(text.replace("\\\n", " "))
    return any(_makes(command.lstrip(_PROMPT).split(), path) for command in commands if base in command)


def _makes(words: list[str], path: str) -> bool:
    if len(words) < 2:
        return False
    plain = [word.strip("\"'") for word in words]
    program, last = posixpath.basename(plain[0]), plain[-1]
    if program in _COPIES and len(plain) > 2:
        into = f"{last.rstrip('/')}/{posixpath.basename(path)}"
        copied = any(posixpath.basename(word) == posixpath.basename(path) for word in plain[1:-1])
        return _leads_to(last, path) or (copied and _leads_to(into, path))
    if program == "tee" and any(_leads_to(word, path) for word in plain[1:]):
        return True
    for before, word in pairwise(plain):
        if (before in (">", ">>") and _leads_to(word, path)) or (word[:1] == ">" and _leads_to(word.lstrip(">"), path)):
            return True
    options = _NAMES_OUTPUT.get(program, ()) if program != "accelerate" or plain[1] == "config" else ()
    given = [*pairwise(plain), *(tuple(word.split("=", 1)) for word in plain if "=" in word)]
    return any(option in options and _leads_to(value, path) for option, value in given)


def _leads_to(word: str, path: str) -> bool:
    found = _without_dots(word)
    return found == path or found.endswith(f"/{path}")


def _without_dots(name: str) -> str:
    """A path without what leads to the folder in which it begins (``../configs/ds.json``)."""
    return re.sub(r"^(?:\.\./)+", "", posixpath.normpath(name))
