"""Which of the files that no run has taken look like a part of one, and why they were not understood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from lintfit.documents.files import ONLY_POINTER, ReadError, is_notebook, kind_of
from lintfit.documents.markdown import is_page
from lintfit.documents.model import DataDocument, Document, Kind
from lintfit.documents.workspace import Workspace
from lintfit.frozen import frozen
from lintfit.run.discover import FoundFiles
from lintfit.run.model import Run, Skipped
from lintfit.sources import detect
from lintfit.sources.script.prefilter import is_test, maybe_notebook

NO_KIND = "not a kind of file that lintfit reads"
NO_LAUNCH = "none of its code blocks starts a training"
NO_CONFIG = "neither a DeepSpeed config, nor an Accelerate config, nor a recipe that lintfit knows"


@frozen(eq=False)
class Reading:
    """What was made of the files: ``taken`` are resolved paths of all that runs are made of, ``parsed`` the documents
    by path, ``dropped`` the launches that are no training as far as is known."""

    found: FoundFiles
    workspace: Workspace
    parsed: dict[Path, Document]
    taken: frozenset[Path]
    dropped: tuple[Run, ...]
    untrained: Mapping[Path, str]
    """Recipes that no command trains by, with the file that has the one that is given it."""


def skipped(reading: Reading) -> Iterator[Skipped]:
    """One for each file that looks like a part of a run and was not understood, and each that was named and is of no
    kind that lintfit reads."""
    for path in reading.found.files:
        try:
            text = reading.workspace.file(path).text
        except ReadError as error:
            # What is named has a line on standard error; a JSON may be data, and a run that lacks one says so.
            named = path in reading.found.named
            if error.reason == ONLY_POINTER and not named and kind_of(path) not in (None, Kind.JSON):
                yield Skipped(path, error.reason)
            continue
        reason = _reason(reading, path, text) if reading.workspace.located(path) not in reading.taken else None
        if reason is not None:
            yield Skipped(path, reason)


def _reason(reading: Reading, path: Path, text: str) -> str | None:
    named = path in reading.found.named
    if path in reading.untrained:
        return f"a recipe that only commands are given that do not train ({reading.untrained[path]})" if named else None
    if is_notebook(path):
        return _of_notebook(reading, path, text, named)
    match kind_of(path, text):
        case Kind.JSON | Kind.YAML as kind:
            return _of_data(reading.parsed.get(path), text, kind, named)
        case Kind.PYTHON:
            return _of_script(reading.parsed.get(path), path, text, named)
        case Kind.SHELL:
            return _of_launches(reading, path, text, named)
        case None:
            return _of_other(path, text, named)


def _of_data(document: Document | None, text: str, kind: Kind, named: bool) -> str | None:
    if isinstance(document, DataDocument) and (detect.dialect(document) or document.problems):
        return None  # its rules say what there is to say
    from lintfit.sources.unread_data import unread_data

    return unread_data(text, kind) or (NO_CONFIG if named and text.strip() else None)


def _of_script(document: Document | None, path: Path, text: str, named: bool) -> str | None:
    from lintfit.sources.unread_code import unread_script

    if document is not None and document.problems:
        # Where it was named, its rule or a line on standard error says so.
        return None if named else _unparsed(document)
    return None if is_test(path.name, text) else unread_script(path.name, text, named)


def _unparsed(document: Document) -> str:
    problem = document.problems[0]
    return f"line {document.position(problem.span.start).line} cannot be parsed: {problem.detail}"


def _of_launches(reading: Reading, path: Path, text: str, named: bool) -> str | None:
    dropped = [run for run in reading.dropped if run.origin.path == path]
    if dropped:
        return _dropped(dropped[0]) if named else None
    if path.suffix in (".yml", ".yaml"):
        return None
    if is_page(path):
        return NO_LAUNCH if named else None
    from lintfit.sources.unread_code import unread_launch

    return unread_launch(text) if not _starts_others(reading.parsed.get(path)) else None


def _dropped(run: Run) -> str | None:
    """Why a launch whose words do not tell is no training."""
    script = run.launch.script if run.launch is not None else None
    if not script:
        return None
    found = len(run.documents) > 1
    return f"it starts {script}, {'in which nothing that trains was found' if found else 'which was not found'}"


def _starts_others(document: Document | None) -> bool:
    """Whether launchers of a shell script were understood: what they start is no training."""
    from lintfit.documents.shell_document import ShellDocument
    from lintfit.sources.launchers.command_line import take_apart

    if not isinstance(document, ShellDocument):
        return False
    if "starts others" not in document.facts:
        found = (take_apart(command.words) for command in document.commands)
        launched = any(invocation is not None and invocation.launcher != "python" for invocation in found)
        document.facts["starts others"] = launched
    return document.facts["starts others"]  # type: ignore[no-any-return]


def _of_notebook(reading: Reading, path: Path, text: str, named: bool) -> str | None:
    """A notebook of which no run came: what it launches and was not understood, or that nothing in it trains."""
    from lintfit.sources.unread_code import unread_notebook

    if not named and not maybe_notebook(text):
        return None
    dropped = next((said for run in reading.dropped if run.origin.path == path and (said := _dropped(run))), None)
    return dropped if dropped is not None and named else unread_notebook(text, named)


def _of_other(path: Path, text: str, named: bool) -> str | None:
    return NO_KIND if named else None
