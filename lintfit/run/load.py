"""From files to runs: which files belong together."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from lintfit.boundary import Mistakes
from lintfit.documents.files import ReadError, is_notebook, kind_of
from lintfit.documents.jobs.kinds import kind_of_job
from lintfit.documents.markdown import is_page, starts_something
from lintfit.documents.model import DataDocument, Document, Kind
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.workspace import Workspace
from lintfit.frozen import field, frozen, replace
from lintfit.options.config import config_for
from lintfit.options.model import Options
from lintfit.run.beside import Beside, OwnScripts, configs_of_folders, defines_only
from lintfit.run.build import build, questions_of
from lintfit.run.changes import Changes
from lintfit.run.discover import SUFFIXES, FoundFiles
from lintfit.run.documented import documented
from lintfit.run.model import Origin, Run, Skipped
from lintfit.run.says import has_script_that_trains, is_for_the_tree, is_read, starts_own_script, trainings, trains
from lintfit.run.skipping import Reading, skipped
from lintfit.sources import detect
from lintfit.sources.recipes.forms import front_end_of
from lintfit.sources.recipes.front_ends import FrontEnd
from lintfit.sources.script.prefilter import is_test, maybe_notebook, maybe_training_script, only_defines

_CONFIGS = (Kind.JSON, Kind.YAML)
_STARTS = lazy_pattern(r"(?:accelerate[ \t]+launch|torchrun|deepspeed|python[\d.]*)[ \t]")
MOST_RUNS = 500
"""Runs of a tree, configs alone apart, that are put together."""
MOST_TRAININGS = 20
"""Trainings of a notebook: for each its cells are read again."""
MOST_FURTHER = 60
"""The same behind the first of each in all notebooks of a tree: real ones have one, a few of them two or three."""
MOST_READINGS = 800
"""Readings of these runs: each is read again as every older version that its reading hangs on. DeepSpeedExamples, with
more runs than any other public repository that was checked, has 243 runs and 512 readings."""
TOO_MANY = (
    f"more than {MOST_RUNS} runs in what is checked, or {MOST_READINGS} with those by older versions of libraries: "
    "those that begin here are not judged"
)
_LONGEST = 200_000
"""Characters of a file of no known use that is parsed because it was named."""


@frozen
class Loaded:
    """The documents that were read, in order, and the runs that they make up."""

    documents: tuple[Document, ...]
    runs: tuple[Run, ...]
    errors: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()
    """What looks like a part of a run and was not understood, in the order of the files."""
    files_read: int = 0
    """Files that were opened: those that were found, and those that runs brought along."""
    others: tuple[Run, ...] = ()
    """Runs that nobody asks about: the change that is checked touches none of their files."""


Build = Callable[[Origin, Workspace, Options], Run]
"""What gives the run that begins at an origin."""


def load(found: FoundFiles, workspace: Workspace, cli: Options, build: Build = build) -> Loaded:
    """Read what was found and put it together to runs.

    A launch line pulls in the script and the configs that it names. Scripts that train, recipes and configs that no
    launch names are runs of their own; those that the user named together, or that a ``[[run]]`` table lists, are one.
    """
    reader = _Reader(found, workspace, cli)
    mistakes = reader.mistakes
    making = _Making(workspace, cli, mistakes, build)
    documents = reader.read_all()
    workspace.settle()
    launches = [*_launched(documents, making, pages=False)]
    runs = [run for run in launches if trains(run)]
    taken = {path for run in runs for path in _taken(run, workspace)}
    pages = [*_launched(documents, making, pages=True)]
    runs += documented(pages, found.named, frozenset(taken), trains)
    taken |= {path for run in runs for path in _taken(run, workspace)}
    launches += pages
    for origin in _lonely_scripts(documents, taken, found, making):
        quoted = [*_quoted(origin, making)]
        if quoted:
            runs += quoted
            taken |= {path for run in quoted for path in _taken(run, workspace)}
            continue
        run = making.run(origin)
        for each in (run, *_further(run, making)):
            if each is not None and has_script_that_trains(each):
                runs.append(each)
                taken |= _taken(each, workspace)
    idle = _untrained(documents, taken, workspace)
    lonely = [each for each in documents if each.path in found.named or _OF_TESTS.isdisjoint(each.path.parts[:-1])]
    apart = taken | {workspace.located(path) for path in idle}
    own_scripts = OwnScripts(launches)
    for origin in _lonely_data(lonely, apart, workspace, configs_of_folders(runs), found.named):
        run = making.run(origin)
        if run is not None and origin.kind == "recipe" and is_for_the_tree(run, workspace):
            continue
        if run is not None and origin.path not in found.named and own_scripts.may_start(run):
            continue
        if run is not None and (origin.kind == "config" or is_read(run)):
            runs.append(run)
            taken |= _taken(run, workspace)
            apart |= taken
    reading = Reading(
        found,
        workspace,
        {document.path: document for document in documents},
        frozenset(taken | {workspace.located(path) for path in making.beyond}),
        tuple(run for run in launches if not trains(run)),
        idle,
    )
    loaded = Loaded(
        tuple(documents),
        tuple(runs),
        (*reader.errors, *mistakes.lines),
        (*reader.skipped, *making.left_out(), *skipped(reading)),
        len(reader.read | taken),
    )
    return loaded if found.changes is None else _touched(loaded, found.changes, workspace)


def _touched(loaded: Loaded, changes: Changes, workspace: Workspace) -> Loaded:
    """The runs that a change touches, and of the files outside of them those that it changes."""

    def changed(path: Path) -> bool:
        return changes.has(Path(os.path.normpath(workspace.root / path)))

    runs = tuple(run for run in loaded.runs if changes.touches(run, workspace.root))
    own = {document for run in runs for document in run.documents}
    return replace(
        loaded,
        runs=runs,
        others=tuple(run for run in loaded.runs if run not in runs),
        documents=tuple(each for each in loaded.documents if each in own or changed(each.path)),
        skipped=tuple(each for each in loaded.skipped if changed(each.path)),
    )


def _launched(documents: Sequence[Document], making: _Making, pages: bool) -> Iterable[Run]:
    """The runs of launch lines: those of pages, or all others."""
    for document in documents:
        for origin in (
            _launch_origins(document, making.workspace, making.mistakes) if is_page(document.path) is pages else ()
        ):
            run = making.run(origin)
            if run is not None:
                yield run


@frozen(eq=False)
class _Making:
    """What runs are made of, and how."""

    workspace: Workspace
    cli: Options
    mistakes: Mistakes
    build: Build
    begun: dict[Origin, int] = field(default_factory=dict)
    """The runs that were put together, and how often each of them is read."""
    beyond: dict[Path, None] = field(default_factory=dict)
    """Files with runs that are beyond those that are put together."""

    def run(self, origin: Origin) -> Run | None:
        """The run that begins here; None where this program fails over it, or where there are too many."""
        if origin.kind != "config":
            if self.is_full:
                self.beyond[origin.path] = None
                return None
            self.begun[origin] = 1
        with self.mistakes.end_at(origin.path.as_posix()):
            run = self.build(origin, self.workspace, self.cli)
            if origin in self.begun:
                self.begun[origin] += run.says("readings", lambda: len(questions_of(run)))
            return run
        return None

    @property
    def further(self) -> int:
        """How many trainings of notebooks were put together behind the first of each."""
        return sum(origin.in_notebook and origin.index > 0 for origin in self.begun)

    @property
    def is_full(self) -> bool:
        """Whether no other run is put together."""
        return len(self.begun) >= MOST_RUNS or sum(self.begun.values()) >= MOST_READINGS

    def left_out(self) -> Iterator[Skipped]:
        """The files with runs that were not put together."""
        return (Skipped(path, TOO_MANY) for path in self.beyond)


class _Reader:
    """Reads the found files that are worth it: a cheap look at the text decides before anything is parsed."""

    def __init__(self, found: FoundFiles, workspace: Workspace, cli: Options) -> None:
        self.found, self.workspace, self.cli = found, workspace, cli
        self.errors: list[str] = list(found.errors)
        self.mistakes = Mistakes()
        self.skipped: list[Skipped] = []
        self.read: set[Path] = set()
        """The resolved paths of the files that could be read."""

    def read_all(self) -> list[Document]:
        documents: list[Document] = []
        for path in self.found.files:
            with self.mistakes.end_at(path.as_posix()):
                document = self._read(path)
                documents += [document] if document is not None else []
        return documents

    def _read(self, path: Path) -> Document | None:
        try:
            if path not in self.found.named:
                look = self.workspace.told(path, "looks like", partial(_look, path))
                if look != _JOB:
                    self.read.add(self.workspace.located(path))
                    return self.workspace.read(path) if look else None
            text = self.workspace.file(path).text
            self.read.add(self.workspace.located(path))
            kind = kind_of(path, text)
            if kind is not Kind.SHELL and kind_of_job(path, text) is not None:
                job = self.workspace.read(path, Kind.SHELL)
                if getattr(job, "commands", ()):
                    return job
            named = path in self.found.named
            if is_notebook(path):
                return self.workspace.read(path) if named or maybe_notebook(text) else None
            empty = kind is Kind.JSON and named and not text.strip()
            if empty or (kind is not None and _is_relevant(path, kind, text)):
                return self.workspace.read(path)
            return self._broken(path, kind, text) if kind is not None and named else None
        except ReadError as error:
            if path in self.found.named:
                self.errors.append(str(error))
            return None

    def _broken(self, path: Path, kind: Kind, text: str) -> Document | None:
        """A file that was named and is none of a run's as far as its text tells, where it cannot be parsed."""
        from lintfit.documents import python_syntax
        from lintfit.documents.broken import is_broken

        if len(text) > _LONGEST or (kind is Kind.PYTHON and python_syntax.accepts(text)):
            return None
        document = self.workspace.read(path)
        return document if is_broken(document) else None


_JOB = "a job"
"""A file that may hold jobs, which is told by what it starts."""


def _look(path: Path, text: str) -> str:
    """What a file that a search has found looks like by its name and text; empty for what is not read."""
    kind = kind_of(path, text)
    if kind is not Kind.SHELL and kind_of_job(path, text) is not None:
        return _JOB
    if is_notebook(path):
        return "a notebook" if maybe_notebook(text) else ""
    return "a document" if kind is not None and _is_relevant(path, kind, text) else ""


def _is_relevant(path: Path, kind: Kind, text: str) -> bool:
    """Whether a file may be a part of a run: a cheap look at its text."""
    match kind:
        case Kind.JSON:
            configures = detect.maybe_deepspeed(text) or detect.maybe_accelerate(text)
            return configures or front_end_of(text, kind) is not None
        case Kind.YAML:
            return detect.maybe_accelerate(text) or front_end_of(text, kind) is not None
        case Kind.SHELL:
            return detect.maybe_launch(text) and (not is_page(path) or starts_something(text))
        case Kind.PYTHON:
            return maybe_training_script(text)


def _taken(run: Run, workspace: Workspace) -> set[Path]:
    return {workspace.located(document.path) for document in (*run.documents, *run.opened)}


def _launch_origins(document: Document, workspace: Workspace, mistakes: Mistakes) -> Iterable[Origin]:
    if document.kind is not Kind.SHELL and not is_notebook(document.path):
        return
    from lintfit.sources.launchers.launcher import MOST_LAUNCHES, count_launches, not_followed

    with mistakes.end_at(document.path.as_posix()):
        shell = document if document.kind is Kind.SHELL else workspace.read(document.path, Kind.SHELL)
        count = count_launches(shell)
        if count == MOST_LAUNCHES and (line := not_followed(shell)):
            mistakes.note(line)
        for index in range(count):
            yield Origin("launch", document.path, index)


def _lonely_scripts(
    documents: Sequence[Document], taken: set[Path], found: FoundFiles, making: _Making
) -> Iterable[Origin]:
    workspace = making.workspace
    # What a notebook's cells train and what it launches are two things.
    scripts = [
        d
        for d in documents
        if d.kind is Kind.PYTHON and (workspace.located(d.path) not in taken or is_notebook(d.path))
    ]
    named = [script for script in scripts if script.path in found.named]
    what_lies = Beside(workspace)
    for script in scripts:
        if is_test(script.path.name, script.text):
            continue
        if script.path not in found.named and _only_defines(script, workspace):
            continue
        partners = _partners(script, named, found, making.cli)
        beside = what_lies.config_of(script) if not (partners or making.is_full) else None
        if beside is not None and workspace.located(beside) in taken:
            beside = None  # a launch line starts another script with it
        yield Origin("script", script.path, partners=partners, beside=beside, named=script.path in found.named)


def _only_defines(script: Document, workspace: Workspace) -> bool:
    if is_notebook(script.path):
        return only_defines(script.text)
    return defines_only(script.path, workspace)


def _further(run: Run | None, making: _Making) -> Iterable[Run | None]:
    """The other trainings of a notebook, behind its first."""
    if run is None or not run.origin.in_notebook:
        return
    count = trainings(run)
    if count > MOST_TRAININGS:
        name = run.origin.path.as_posix()
        making.mistakes.note(f"{name}: more than {MOST_TRAININGS} trainings: the others are not judged")
    for index in range(1, min(count, MOST_TRAININGS)):
        if making.further >= MOST_FURTHER:
            making.beyond[run.origin.path] = None
            return
        yield making.run(replace(run.origin, index=index))


_OF_TESTS = frozenset({"fixtures", "test", "testdata", "tests"})
"""Folders whose recipes nobody trains from: tests read them."""


def _lonely_data(
    documents: Sequence[Document],
    taken: set[Path],
    workspace: Workspace,
    started: Mapping[tuple[Path, str], Path],
    named: Collection[Path],
) -> Iterable[Origin]:
    """The recipes that no launch line and no script names, and then the configs that none of all these names."""
    data = [document for document in documents if isinstance(document, DataDocument)]
    for document in data:
        if workspace.located(document.path) in taken:
            continue
        front_end = front_end_of(document.text, document.kind)
        if front_end is not None and not _of_own_program(document, front_end, workspace):
            beside = started.get((document.path.parent, front_end))
            yield Origin("recipe", document.path, beside=beside, named=document.path in named)
    for document in data:
        if workspace.located(document.path) not in taken and detect.dialect(document):
            yield Origin("config", document.path)


def _untrained(documents: Sequence[Document], taken: set[Path], workspace: Workspace) -> Mapping[Path, str]:
    """The recipes that no run has taken and that are only given to commands that do not train, with where that is."""
    from lintfit.run.untrained import any_idle, untrained

    data = [each for each in documents if isinstance(each, DataDocument)]
    recipes = [each for each in data if front_end_of(each.text, each.kind) is not None]
    if all(workspace.located(each.path) in taken for each in recipes) or not any_idle(documents):
        return {}
    found = untrained(recipes, documents, workspace)
    return {path: where for path, where in found.items() if workspace.located(path) not in taken}


_ITS_OWN: Mapping[FrontEnd, tuple[str, frozenset[str]]] = {
    "llamafactory": ("cutoff_len", frozenset({"llamafactory", "llmtuner"})),
}
"""A field that the arguments of a front end have, and the packages by whose names its own code goes."""


def _of_own_program(document: DataDocument, front_end: FrontEnd, workspace: Workspace) -> bool:
    """Whether the tree has a program that takes such recipes, under another name: with arguments of its own."""
    from lintfit.run.key_reads import key_reads

    field, packages = _ITS_OWN.get(front_end, ("", frozenset()))
    if not field or field not in document.text:
        return False
    declared = key_reads(workspace).declared(document.path, field)
    return bool(declared) and all(packages.isdisjoint(path.parts) for path in declared)


def _quoted(script: Origin, making: _Making) -> Iterable[Run]:
    """The trainings by the lines of a script's own docstring that start it, where all that they name is there.

    What the user put beside the script counts before its docstring.
    """
    if script.partners or is_notebook(script.path) or not _starts_itself(script.path, making.workspace):
        return
    from lintfit.sources.launchers.launcher import count_launches

    with making.mistakes.end_at(script.path.as_posix()):
        for index in range(min(_MOST_QUOTED, count_launches(making.workspace.read(script.path, Kind.SHELL)))):
            run = making.run(Origin("launch", script.path, index))
            if run is not None and starts_own_script(run):
                yield run


_MOST_QUOTED = 20
"""Commands of one docstring that are read; those of real scripts have a few."""


def _starts_itself(path: Path, workspace: Workspace) -> bool:
    """Whether a script's text has a line like one that starts it; a cheap look before anything is parsed."""
    text = workspace.file(path).text
    return path.name in text and _STARTS.search(text) is not None


def _partners(script: Document, named: Sequence[Document], found: FoundFiles, cli: Options) -> tuple[Path, ...]:
    """Configs that belong to a script: those of its ``[[run]]`` table, or named together with this one script."""
    group = config_for(script.path, cli).group_of(script.path)
    if group is not None:
        return tuple(path for path in group.files if path.suffix in SUFFIXES and path != script.path.absolute())
    if len(named) != 1 or script is not named[0]:
        return ()
    return tuple(path for path in found.files if path in found.named and SUFFIXES.get(path.suffix) in _CONFIGS)
