from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.settings.model import Place


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    launch = run.launch
    if launch is None or launch.launcher != "torchtune" or launch.invocation.opaque:
        return
    from lintfit.catalog.torchtune import registry

    name = (launch.action or "").removeprefix("run ")
    recipe = registry().recipes.get(name)  # a copy of one by its path is run as it is
    options = tuple(launch.invocation.options.values())
    if recipe is None or name.startswith("dev/"):
        return
    if options and not recipe.distributed:
        yield Report(
            Place(launch.document, options[0].flag.at),
            f"{name} runs in one process, and torchrun's options start several: the run stops with “Recipe {name} does "
            "not support distributed training”",
            help=f"take {options[0].flag.text.partition('=')[0]} out, or take the distributed recipe",
        )
    elif recipe.distributed and not options and "RANK" not in launch.environment:
        yield Report(
            launch.place,
            f"{name} is started without torchrun: the run stops with RuntimeError (should be run via a distributed "
            "launcher), or with init_process_group's ValueError",
            help="write tune run --nproc_per_node N in front of the recipe",
        )
