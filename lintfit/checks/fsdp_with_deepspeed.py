from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.runs import stated_at
from lintfit.run.stopping import asks_for_two_engines

DECIDED_BY = ("engine",)


def check_run(context: RunContext) -> Iterator[Report]:
    found = asks_for_two_engines(context.run)
    if found is not None:
        yield Report(
            found.place,
            "the arguments ask for FSDP in a run with DeepSpeed: the Trainer stops with ValueError (Using --fsdp xxx "
            "together with --deepspeed is not possible)",
            related=related(stated_at(context.run, "deepspeed", "engine"), "DeepSpeed is asked for here"),
            help="ask for one of them",
        )
