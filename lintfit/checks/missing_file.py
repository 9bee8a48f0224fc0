from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import FileContext, Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.findings.model import Severity
from lintfit.run.lacking import SCRIPT
from lintfit.run.model import Run
from lintfit.run.stopping import refuses_its_command

if TYPE_CHECKING:
    from lintfit.run.missing import Missing

OF_THE_FILES_ALONE = True


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    for each in _first_missing(run):
        if each.certainty == "sure":
            yield Report(
                each.place or anchor(run),
                f"{each.what}, {each.name}, does not exist: {_stops(each)}{_meant(each)}",
                Severity.INFO if _by_default(run, each) or _comes_too_late(run, each) else None,
                help="it is looked for beside this file and above it",
            )


def check_file(context: FileContext) -> Iterator[Report]:
    """What may lie elsewhere, once a file, however many launch lines of it name it."""
    named: set[str] = set()
    for run in context.runs:
        for each in _first_missing(run):
            if each.certainty != "elsewhere" or each.place is None or each.place.document is not context.document:
                continue
            if each.name not in named:
                named.add(each.name)
                yield Report(
                    each.place,
                    f"{each.what}, {each.name}, is not among these files: the memory of this run is not known without "
                    f"it{_meant(each)}",
                    Severity.INFO,
                )


def _first_missing(run: Run) -> tuple[Missing, ...]:
    """The files that a run is the first to miss: without the script that is launched nothing opens any other."""
    if run.origin.kind == "config":
        return ()
    scripts = tuple(each for each in run.missing if each.what == SCRIPT)
    return scripts or run.missing


def _by_default(run: Run, missing: Missing) -> bool:
    """Whether only a script's own default names a file, which whoever starts it may name otherwise."""
    in_script = run.script is not None and missing.place is not None and missing.place.document is run.script.document
    return in_script and run.launch is None and run.script is not None and run.script.walk.parses


def _comes_too_late(run: Run, missing: Missing) -> bool:
    """Whether the script's parser refuses the command first, so that nothing ever looks for what it names."""
    return missing.what != SCRIPT and refuses_its_command(run)


def _stops(missing: Missing) -> str:
    return "the command stops at once" if missing.what == SCRIPT else "the run stops before it trains"


def _meant(missing: Missing) -> str:
    return f'; did you mean "{missing.meant}"?' if missing.meant is not None else ""
