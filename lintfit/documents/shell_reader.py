"""Shell scripts: their commands with every word and the place it is written at.

tree-sitter-bash tells where commands, assignments, redirects and branches are; :mod:`lintfit.documents.shell_walk`
follows them, and what a word comes to is worked out in :mod:`lintfit.documents.shell_expansion`. Nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path

from lintfit.documents.conflicts import conflict
from lintfit.documents.cut_commands import Cut, in_literals, mended
from lintfit.documents.jobs.kinds import kind_of_job
from lintfit.documents.limits import MAX_BYTES, too_large
from lintfit.documents.markdown import is_page, shells, shown_files, with_commands
from lintfit.documents.model import NOT_READ, FileText, Kind, Problem, Span
from lintfit.documents.placeholders import unfilled
from lintfit.documents.shell_asides import without_asides
from lintfit.documents.shell_document import HereFile, ShellDocument
from lintfit.documents.shell_elsewhere import (
    in_docstring,
    is_makefile,
    is_python,
    is_workflow,
    make_variables,
    recipes,
    run_steps,
)
from lintfit.documents.shell_files import copies
from lintfit.documents.shell_source import Source
from lintfit.documents.shell_sourced import OpenText
from lintfit.documents.shell_walk import Walk
from lintfit.documents.shell_words import MAX_STEPS, Given
from lintfit.documents.steps import Steps
from lintfit.frozen import replace
from lintfit.memo import Memo

_READ: Memo[ShellDocument] = Memo(most=8)
"""What scripts that take nothing from other files were read as, by their text: who changes a script reads what comes of
it, and whoever asks about the change reads that again."""


def read_shell(
    file: FileText, open_text: OpenText | None = None, given: Given | None = None, within: Steps | None = None
) -> ShellDocument:
    """Read a shell script, or the commands of a Makefile, a GitHub workflow, a page, or a Python script's docstring.

    Never raises for bad text.

    What tree-sitter cannot parse is one ``syntax-error``, or ``not-read`` where bash takes it; the commands around it
    are still there. So is what was followed before the steps of the reading were spent, which is ``not-read``, too.
    ``open_text`` opens the files that it takes variables from (``source common.sh``). ``given`` is what another file
    starts it with; ``within`` is the counter of all readings of a tree.
    """
    key = file.path, file.within is None, file.text, open_text is None
    found = _READ.find(given, key)
    if found is not None:
        return replace(found, file=file, open_text=open_text if found.open_text is not None else None)
    opening = _Opening(open_text) if open_text is not None else None
    document = _read(file, opening, given, within)
    if (opening is None or not opening.asked) and not (within is not None and within.spent):
        _READ.keep(given, key, document)
    return replace(document, open_text=open_text) if document.open_text is not None else document


class _Opening:
    """Opens what a script sources, and knows whether it was asked to."""

    def __init__(self, open_text: OpenText) -> None:
        self._open_text, self.asked = open_text, False

    def __call__(self, path: Path) -> FileText | None:
        self.asked = True
        return self._open_text(path)


def _read(file: FileText, open_text: OpenText | None, given: Given | None, within: Steps | None) -> ShellDocument:
    if len(file.text) > MAX_BYTES[Kind.SHELL]:
        return ShellDocument(file, Kind.SHELL, (Problem(NOT_READ, too_large(Kind.SHELL), Span(0, 0)),))
    if within is not None and within.spent:
        return ShellDocument(file, Kind.SHELL, (Problem(NOT_READ, within.reason, Span(0, 0)),))
    steps = Steps(MAX_STEPS, "steps of a shell script", within)
    documented = is_python(file.path) or is_page(file.path)
    stops = _conflict(file) if not documented and not is_workflow(file.path) else None
    if stops is not None:
        runs = _read(replace(file, text=_above(file.text, stops.span.start)), open_text, given, within)
        return replace(runs, file=file, problems=(*runs.problems, stops))
    whole, cuts = (file, ()) if documented else _mended(file)
    job = kind_of_job(file.path, file.text) if not is_workflow(file.path) else None
    if is_workflow(file.path):
        texts = [*islice(run_steps(whole), _MOST_JOBS + 1)]
        steps.allows(len(texts), _MOST_JOBS, "steps of a workflow")
        walks = [Walk(file, steps, text) for text in texts[:_MOST_JOBS]]  # each in a shell of its own
    elif is_makefile(file.path):
        walks = [Walk(file, steps, recipes(whole.text))]
        walks[0].scope.variables.update(make_variables(file.text, steps))
    elif job is not None:
        return replace(_read_job(whole, job, steps), file=file, cuts=cuts)
    elif is_python(file.path):
        walks = [Walk(file, steps, in_docstring(file.text))]
    elif is_page(file.path):
        walks = [Walk(file, steps, text) for text in islice(shells(file.text), _blocks(file, steps))]
    else:
        walks = [Walk(file, steps, without_asides(whole.text), open_text)]
        if given is not None:
            walks[0].scope.positional = given.arguments
            walks[0].scope.variables.update(given.variables)
    for walk in walks:
        walk.run()
    own = not is_workflow(file.path) and not documented
    # What make, GitHub or IPython itself fills in need not be bash.
    filled = is_makefile(file.path) or file.within is not None
    bash = walks[0].source if own and not filled else None
    commands = tuple(command for walk in walks for command in walk.commands)
    return ShellDocument(
        file,
        Kind.SHELL,
        tuple(_problems(bash, file, steps)),
        commands=tuple(map(unfilled, commands)) if documented else commands,
        directives=walks[0].directives if own else (),
        variables=walks[0].scope.variables if own else {},
        files=(*_shown(file), *(written for walk in walks for written in walk.files)),
        redirected=tuple(name for walk in walks for name in walk.redirections),
        filled=tuple(
            sorted((*(made for walk in walks for made in walk.filled), *copies(commands)), key=attrgetter("start"))
        ),
        open_text=open_text if own else None,
        given=given if own else None,
        cuts=cuts,
    )


def _conflict(file: FileText) -> Problem | None:
    """The marker of a merge at which bash stops: in a here-document it is text as any."""
    found = conflict(file.text)
    if found is None:
        return None
    from lintfit.documents.bash_syntax import refuses

    return found if refuses(file.text, "") else None


def _above(text: str, stop: int) -> str:
    """What bash runs of a script before it stops at a line: all but the command that the line stands in."""
    lines = text[:stop].splitlines(keepends=True)
    while lines and lines[-1].rstrip("\r\n").endswith("\\"):
        del lines[-1]
    return "".join(lines)


def _mended(file: FileText) -> tuple[FileText, tuple[Cut, ...]]:
    """The file with its commands as they are meant; the places stay the same."""
    text, cuts = mended(file.text, in_literals if file.path.suffix in (".yaml", ".yml") else None)
    return (replace(file, text=text) if cuts else file), cuts


_MOST_BLOCKS = 200
"""Blocks of commands of one page that are followed. Of the pages of 180 public repositories none has more than 42."""


def _blocks(file: FileText, steps: Steps) -> int:
    """How many blocks of a page are followed; where it has more, the reading says so."""
    found = sum(1 for _ in islice(with_commands(file.text), _MOST_BLOCKS + 1))
    steps.allows(found, _MOST_BLOCKS, "blocks of commands")
    return _MOST_BLOCKS


_MOST_JOBS = 300
"""Jobs of one file, or recipes of a justfile, that are followed: each is read as a text as long as what lies before it,
and a file of them that somebody keeps has some dozens."""


def _read_job(file: FileText, kind: str, steps: Steps) -> ShellDocument:
    from lintfit.documents.jobs.commands import commands_of
    from lintfit.documents.jobs.kinds import read_jobs

    jobs = [*islice(read_jobs(file, kind), _MOST_JOBS + 1)]
    steps.allows(len(jobs), _MOST_JOBS, "jobs")
    commands = tuple(command for job in jobs[:_MOST_JOBS] for command in commands_of(job, file, steps))
    problems = tuple(_problems(None, file, steps))
    return ShellDocument(file, Kind.SHELL, problems, commands=tuple(map(unfilled, commands)))


def _shown(file: FileText) -> Iterator[HereFile]:
    """The files that a page shows."""
    for name, block in shown_files(file.text) if is_page(file.path) else ():
        yield HereFile(name, Span(block.start, block.end))


def _problems(source: Source | None, file: FileText, steps: Steps) -> Iterator[Problem]:
    if steps.reason:
        yield Problem(NOT_READ, steps.reason, Span(0, 0))
    problem = source.problem() if source is not None else None
    if problem is None:
        return
    from lintfit.documents.bash_syntax import refuses

    line = file.text.find("\n", problem.span.end)
    written = file.text[file.text.rfind("\n", 0, problem.span.start) + 1 : line if line >= 0 else None]
    yield problem if refuses(file.text, written) else replace(problem, code=NOT_READ)
