"""What a shell script is once it has been read: commands, variables, directives, and the files that it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lintfit.documents.cut_commands import Cut
from lintfit.documents.model import Document, FileText, Span
from lintfit.documents.shell_directives import Directive
from lintfit.documents.shell_words import Given, Variable, Word
from lintfit.frozen import field as frozen_field
from lintfit.frozen import frozen


@frozen
class HereFile:
    """A file that a script writes: its name as far as it is known, and the text of it.

    ``expansions`` are the references in the text that the shell fills in, with what they come to (None: not known).
    ``conditional``: whether it is written in a branch that may not run.
    """

    name: str
    span: Span
    expansions: tuple[tuple[Span, str | None], ...] = ()
    conditional: bool = False


@frozen
class Filled:
    """A file that ``envsubst`` makes of another (``origin``), in which it fills in variables, or ``cp`` of one as it
    is; where that stands."""

    name: str
    origin: str
    start: int


@frozen
class Assignment:
    """``NAME=value`` in front of a command. ``value`` is None where it cannot be known."""

    name: str
    value: str | None
    span: Span
    value_span: Span


@frozen(eq=False)
class Command:
    """One simple command as it would run.

    ``words`` are the words after expansion, without redirects; prefixes such as ``srun`` or ``nohup`` are words, and
    so are the parts of the string that ``eval`` or ``bash -c`` runs. ``assignments`` stand in front of it (or are
    set by ``env``'s place as plain words). ``environment`` is what is exported by then. ``span`` reaches from the
    first assignment to the last word; ``end`` is where an argument can be added, before any redirect.
    ``conditional``: whether it stands in an ``if``, ``case``, loop or behind ``||``; ``function`` names the function
    that it stands in, if any. ``folder`` is where the script's own ``cd`` lead from the folder that it is started in;
    ``.`` also where that is not statically known, and ``lost`` then.
    """

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...]
    environment: Mapping[str, Variable]
    span: Span
    end: int
    conditional: bool = False
    function: str | None = None
    folder: str = "."
    lost: bool = False
    """Whether a ``cd`` above it led where nobody can tell."""
    batch: Mapping[str, tuple[str, Span]] = frozen_field(default_factory=dict)
    """What a job file asks for beside it, in sbatch's words; ``instance`` is a cloud's type of machine."""
    listed: bool = False
    """Whether its words are items of a list or arguments of a call, where no shell takes it apart."""
    idle: bool = False
    """Whether it stands in a branch that does not run as the script is: somebody may set a variable otherwise."""


@dataclass(slots=True, eq=False)
class ShellDocument(Document):
    """A shell script. ``variables`` holds what each variable is at the end of the script."""

    commands: tuple[Command, ...] = ()
    directives: tuple[Directive, ...] = ()
    variables: Mapping[str, Variable] = field(default_factory=dict)
    files: tuple[HereFile, ...] = ()
    """The files that it writes with here-documents, in order."""
    redirected: tuple[str, ...] = ()
    """The names of all files that it redirects output to, what is not statically known of them as written."""
    filled: tuple[Filled, ...] = ()
    """Files that are copies of another, or it with variables filled in, in order."""
    open_text: Callable[[Path], FileText | None] | None = field(default=None, repr=False)
    """Opens the files that it sources: needed to read a changed text of it the same way."""
    given: Given | None = None
    """What another file of the tree starts it with, where its own text does not say it."""
    cuts: tuple[Cut, ...] = ()
    """Where its commands are cut, though they are read as they are meant."""
