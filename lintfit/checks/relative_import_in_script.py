from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.run.stopping import imports_from_no_package


def breaks_the_command(context: RunContext) -> bool:
    return imports_from_no_package(context.run) is not None


def check_run(context: RunContext) -> Iterator[Report]:
    launch, found = context.run.launch, imports_from_no_package(context.run)
    if launch is not None and found is not None:
        yield Report(
            found,
            f"{launch.script} is started by its path and begins with “{found.text}”: the run stops with ImportError "
            "(attempted relative import with no known parent package)",
            related=related(launch.script_place or launch.place, "started here"),
            help="start it as a module (python -m), or import by the name of the package",
        )
