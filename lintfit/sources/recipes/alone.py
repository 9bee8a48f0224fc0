"""A recipe without a launch line: the command that people start it with is assumed."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast

from lintfit.documents.model import DataDocument, FileText, Kind, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import replace
from lintfit.settings.model import Place, Setting
from lintfit.sources.recipes.forms import front_end_of
from lintfit.sources.recipes.front_ends import READERS

if TYPE_CHECKING:
    from lintfit.documents.shell_document import ShellDocument
    from lintfit.sources.launchers.launch import Launch

_WORD = lazy_pattern(r"""(?:[\w@%+=:,./-]|'[^']*'|"[^"$`\\]*")+""", re.ASCII)
"""A word that the shell leaves as it is, but for quotes: all that :func:`shlex.quote` makes is one."""
_CONFIG = "accelerate_config"
_ASSIGNMENT = lazy_pattern(r"([A-Za-z_]\w*)=")


def usual_command(document: DataDocument) -> str | None:
    """The words that the recipe's front end is usually started with; None where the file is no recipe that trains."""
    front_end = front_end_of(document.text, document.kind)
    if front_end is None or document.root is None or document.root.shape != "mapping":
        return None
    return cast("str | None", import_module(READERS[front_end]).usual_command(document))


def usual_launch(document: DataDocument, config: str | None = None) -> Launch | None:
    """The launch by that command; it stands nowhere, so that its places are the recipe's and it cannot be edited.

    A script of the front end's is what its name says (``scripts/sft.py``). ``config`` is an Accelerate file that takes
    the place of the usual one.
    """
    command = usual_command(document)
    launch = _launch(document, command) if command is not None else None
    named = launch.settings.get(_CONFIG) if launch is not None else None
    if command is not None and config is not None and named is not None:
        launch = _launch(document, command.replace(str(named.value), shlex.quote(config)))
    if launch is None:
        return None
    settings = {name: setting for name, setting in launch.settings.items() if config is None or name != _CONFIG}
    place = Place(document, _start(document))
    return replace(
        launch,
        place=place,
        script_place=place,
        flags=tuple(replace(flag, place=place, value_place=None, write=None) for flag in launch.flags),
        launcher_flags=(),
        settings={name: _placed(setting, place) for name, setting in settings.items()},
        action=launch.action or PurePosixPath(launch.script or "").stem,
        assumed=True,
    )


def _launch(document: DataDocument, command: str) -> Launch | None:
    from lintfit.sources.launchers.launcher import read_launch

    file = FileText(document.path.with_suffix(".sh"), f"{command}\n")
    if not _WORD.sub("", command).strip(" "):
        return read_launch(_of_plain_words(file), 0)
    from lintfit.documents.shell_reader import read_shell

    return read_launch(read_shell(file), 0)


def _of_plain_words(file: FileText) -> ShellDocument:
    """One simple command as the shell reader reads it, too, whose grammar takes longer to load than a recipe to read.

    Assignments may stand before its words.
    """
    from lintfit.documents.shell_document import Assignment, Command, ShellDocument
    from lintfit.documents.shell_words import Word

    assignments: list[Assignment] = []
    words: list[Word] = []
    for found in _WORD.finditer(file.text):
        span, (value,) = Span(*found.span()), shlex.split(found.group())
        assigned = _ASSIGNMENT.match(value) if not words else None
        if assigned is not None:
            behind = Span(span.start + assigned.end(), span.end)
            assignments.append(Assignment(assigned[1], value[assigned.end() :], span, behind))
        else:
            words.append(Word(value, value, span, (span,)))
    end = len(file.text.rstrip())
    command = Command(tuple(words), tuple(assignments), {}, Span(0, end), end)
    return ShellDocument(file, Kind.SHELL, commands=(command,))


def _placed(setting: Setting, place: Place) -> Setting:
    provenance = setting.provenance
    return setting if provenance.place is None else replace(setting, provenance=replace(provenance, place=place))


def _start(document: DataDocument) -> Span:
    """The first key, which stands for the recipe as a whole."""
    entries = document.root.entries if document.root is not None else ()
    return entries[0].key_span if entries else Span(0, 0)
