from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from lintfit.checks.helpers.context import FileContext, Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.documents import door
from lintfit.findings.model import Severity
from lintfit.run.lacking import SCRIPT
from lintfit.run.missing import Missing
from lintfit.run.model import Run


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    for each in run.missing if run.origin.kind != "config" else ():
        if each.certainty == "sure":
            apart = _of_another_folder(run, each)
            yield Report(
                each.place or anchor(run),
                f"{each.what}, {each.name}, does not exist: the run stops before it trains{_meant(each)}",
                severity=Severity.WARNING if apart else None,
                help=f"there is no folder {apart} here: say so in a comment where the command belongs to other files"
                if apart
                else "it is looked for beside this file and above it",
            )


def check_file(context: FileContext) -> Iterator[Report]:
    """What may lie elsewhere, once a file, however many launch lines of it name it."""
    named: set[str] = set()
    for run in context.runs:
        for each in run.missing if run.origin.kind != "config" else ():
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


def _meant(missing: Missing) -> str:
    return f'; did you mean "{missing.meant}"?' if missing.meant is not None else ""


def _of_another_folder(run: Run, missing: Missing) -> str:
    """The first folder of a script's name where there is none such: the line may be meant for other files."""
    parts = PurePosixPath(missing.name).parts
    if run.launch is None or missing.what != SCRIPT or len(parts) < 2 or parts[0] in (".", ".."):
        return ""
    above = run.launch.document.path.parents
    return "" if any(door.is_folder(folder / parts[0]) for folder in (*above, run.base)) else parts[0]
