"""What other files of the tree hand to a shell script: ``bash finetune.sh google/gemma-2b 2048`` in a script or a page.

A script that takes its model as ``$1`` says nothing of it; the line that starts the script does. Where several start
it, what all of them that say it agree on is known. Nothing of that is written in the script itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lintfit.documents.markdown import is_page, set_once
from lintfit.documents.model import FileText, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.placeholders import unfilled, without_angles
from lintfit.documents.shell_document import Command, ShellDocument
from lintfit.documents.shell_words import Fragment, Given, Variable
from lintfit.documents.written_commands import PROMPT, blank
from lintfit.frozen import replace, word_set

_RUNNERS = word_set(". bash dash env exec ksh nice nohup qsub sbatch setsid sh source srun sudo time zsh")
"""What may stand in front of a script that is started, each with options of its own."""
_STARTS = word_set("accelerate deepspeed llamafactory-cli mpirun python python3 swift torchrun trl")
_SCRIPTS = (".py", ".sh", ".bash", ".slurm", ".sbatch")
_REFERENCE = lazy_pattern(r"\$\{?([A-Za-z_]\w*|[1-9]\d*|[@*])")
_BARE = lazy_pattern(r"\$(?:([1-9])|\{([1-9]\d*)\})")
"""An argument without a default."""
_PARSES = lazy_pattern(r"^[ \t]*+(?:while\s.*)?getopts?\b|\bshift\b", re.MULTILINE)
"""What goes through its arguments in a loop: nobody follows that round by round."""
_MOST_CALLS = 20
"""Calls of one script that are compared."""


def asks(document: ShellDocument) -> bool:
    """Whether a script starts something with a word that it takes from whoever starts it."""
    return _PARSES.search(document.text) is None and any(_asks(command, document) for command in document.commands)


def _asks(command: Command, document: ShellDocument) -> bool:
    if not any(word.value in _STARTS or (word.value or "").endswith(_SCRIPTS) for word in command.words):
        return False
    names = (match[1] for word in command.words if word.unknown for match in _REFERENCE.finditer(word.text))
    return any(not name[0].isalpha() or name not in document.variables for name in names)


def given_to(script: Path, text: str, callers: Iterable[ShellDocument], exists: Iterable[Path] = ()) -> Given | None:
    """What the callers that start a script hand to it; None where none does, or they differ in how much it is.

    ``text`` is the script's own; ``exists``: the other files of its name, which a caller may mean as well.
    """
    others = {path.as_posix() for path in exists}
    calls = [call for document in callers for call in _calls(document, script, others)][:_MOST_CALLS]
    if not calls:
        return None
    used = frozenset(match[1] for match in _REFERENCE.finditer(text))
    wanted = max((int(match[1] or match[2]) for match in _BARE.finditer(text)), default=0)
    full = [call for call in calls if call.arguments and len(call.arguments) >= wanted]
    if len({len(call.arguments) for call in full}) > 1:
        return None
    arguments = tuple(_agreed(values) for values in zip(*(call.arguments for call in full), strict=True))
    names = sorted(used.intersection(*(call.variables for call in calls)))
    variables = {name: value for name in names if (value := _agreed([call.variables[name] for call in calls]))}
    if not any(arguments) and not variables:
        return None
    positional = None if not full else [(_argument(value, number),) for number, value in enumerate(arguments, 1)]
    at = Span(0, 0)
    taken = {name: Variable(name, ((Fragment(value, None),),), at, at) for name, value in variables.items()}
    return Given(positional, taken, (full or calls)[0].where)


def _argument(value: str | None, number: int) -> Fragment:
    return Fragment(f"${{{number}}}" if value is None else value, None, known=value is not None)


def _agreed(values: Sequence[str | None]) -> str | None:
    """The value that all who say one say."""
    said = {value for value in values if value is not None}
    return next(iter(said)) if len(said) == 1 else None


class _Call:
    """A command that starts the script: what it hands over, None where that is not known, and where it stands."""

    def __init__(self, arguments: Sequence[str | None], variables: Mapping[str, str | None], where: str) -> None:
        self.arguments, self.variables, self.where = arguments, variables, where


def _calls(document: ShellDocument, script: Path, others: set[str]) -> Iterator[_Call]:
    path = document.path
    page = is_page(path.with_suffix(""))
    path = path.with_suffix("") if page else path
    for command in document.commands:
        found = _started(command)
        if found is None or not _is(command.words[found].value or "", command, path, script, others):
            continue
        command = unfilled(command) if page else command
        values = {name: variable.value for name, variable in command.environment.items()}
        values |= {each.name: each.value for each in command.assignments}
        line = document.position(command.span.start).line
        arguments = [None if page and _to_fill_in(word.value) else word.value for word in command.words[found + 1 :]]
        yield _Call(arguments, values, f"{path.as_posix()}:{line}")


def _to_fill_in(value: str | None) -> bool:
    """Whether an argument is what a page calls it in capitals: ``MODEL_PATH``."""
    return value is not None and re.fullmatch(r"[A-Z][A-Z\d_]+", value) is not None


def _started(command: Command) -> int | None:
    """Which word of a command is the script that it starts."""
    for index, word in enumerate(command.words):
        value = word.value
        if value is None:
            return None
        if value not in _RUNNERS and not value.startswith("-") and "=" not in value:
            return index
    return None


def _is(name: str, command: Command, caller: Path, script: Path, others: set[str]) -> bool:
    """Whether a name in a caller is the script: from the caller's own folder, or the nearest above it."""
    if Path(name).name != script.name:
        return False
    for folder in caller.parents:
        for entered in dict.fromkeys((command.folder, ".")):
            path = os.path.normpath(folder / entered / name)
            if path == script.as_posix():
                return True
            if path in others:
                return False
    return False


def starts(document: ShellDocument, script: Path) -> bool:
    """Whether a command of a script starts another."""
    return next(_calls(document, script, set()), None) is not None


def mentions(text: str, script: Path) -> bool:
    """Whether a text may start a script: a cheap look at it."""
    return script.name in text


_ON_ITS_LINE = rf"(?:^|`)[ \t]*(?:{PROMPT})?(?P<command>(?:[\w./~${{}}:=-]+[ \t]+){{0,6}}[\w./~${{}}-]*"


def page_as_script(file: FileText, script: Path) -> FileText:
    """A page as a shell script: the lines of it that name the script as a command does, in a block or between
    backticks, and the variables that it gives one value. Every offset is one of the page."""
    command = re.compile(
        rf"{_ON_ITS_LINE}(?<![\w-]){re.escape(script.name)}(?![\w.-])(?:\\\r?\n|[^`\n])*)", re.MULTILINE
    )
    spans = [Span(*found.span("command")) for found in command.finditer(file.text)]
    made, position = "", 0
    for span in sorted((*spans, *set_once(file.text)), key=lambda each: each.start):
        if span.start >= position:
            made += blank(file.text[position : span.start]) + file.text[span.start : span.end]
            position = span.end
    return replace(file, path=file.path.with_name(f"{file.path.name}.sh"), text=without_angles(made))
