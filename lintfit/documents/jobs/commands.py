"""The commands of a job, as a shell script has them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from lintfit.documents.jobs.model import Job, Said
from lintfit.documents.model import FileText, Span
from lintfit.documents.shell_document import Command
from lintfit.documents.shell_walk import Walk
from lintfit.documents.shell_words import Fragment, Variable, Word
from lintfit.documents.steps import Steps
from lintfit.frozen import replace


def commands_of(job: Job, file: FileText, steps: Steps) -> Iterator[Command]:
    """The commands in order, each with what is asked for beside it and what it sees."""
    batch = {name: (text, span) for name, (text, span) in job.batch.items() if text is not None}
    seen = {name: _variable(name, said) for name, said in job.variables.items() if name.isidentifier()}
    for command in _listed(job, seen) if job.words else _walked(job, file, steps, seen):
        command = _started(command, job.started_by)
        folder = posixpath.normpath(posixpath.join(job.folder, command.folder))
        yield replace(command, batch=batch, listed=command.listed or job.fixed, folder=folder)


def _walked(job: Job, file: FileText, steps: Steps, seen: Mapping[str, Variable]) -> Iterator[Command]:
    walk = Walk(file, steps, job.script)
    walk.scope.variables.update(seen)
    walk.run()
    yield from walk.commands


def _listed(job: Job, seen: Mapping[str, Variable]) -> Iterator[Command]:
    words = tuple(Word(text if text is not None else "$", text, span, ()) for text, span in job.words)
    start, end = min(word.at.start for word in words), max(word.at.end for word in words)
    yield Command(words, (), seen, Span(start, end), end, listed=True)


def _started(command: Command, launcher: tuple[str, ...]) -> Command:
    """A ``python`` that the platform starts by a launcher of its own."""
    first = command.words[0]
    if not launcher or not posixpath.basename(first.value or "").startswith("python"):
        return command
    made = tuple(Word(text, text, first.at, ()) for text in launcher)
    return replace(command, words=(*made, *command.words[1:]), listed=True)


def _variable(name: str, said: Said) -> Variable:
    text, span = said
    fragment = Fragment(text if text is not None else f"${name}", None, True, known=text is not None)
    return Variable(name, ((fragment,),), span, span, exported=True)
