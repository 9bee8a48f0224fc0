from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.llamafactory import distributed, recipe_of, stated
from lintfit.findings.model import Applicability, Fix
from lintfit.run.model import Run
from lintfit.sources.launchers.launch import Launch

_SINCE = "0.8.3"


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    if recipe is None or recipe.launch.assumed or not recipe.arguments.since(_SINCE):
        return
    place = stated(recipe.arguments, "deepspeed")
    if place is None or recipe.launch.launcher not in ("llamafactory", "python"):
        return
    alone = recipe.launch.launcher == "python" or _given_one(context.run)
    if alone and distributed(context, recipe) is False:
        yield Report(
            place,
            "DeepSpeed with one process that torchrun did not start: LLaMA-Factory stops with ValueError (Please use "
            "`FORCE_TORCHRUN=1` to launch DeepSpeed training.)",
            fix=_started_by_torchrun(recipe.launch),
            help="put FORCE_TORCHRUN=1 in front of llamafactory-cli, or take deepspeed out",
        )


def _given_one(run: Run) -> bool:
    """Whether a file gives the run its one GPU: by ``CUDA_VISIBLE_DEVICES``, or as a job that asks for one."""
    gpus = run.settings.get("gpus")
    visible = run.launch is not None and "visible_devices" in run.launch.settings
    return visible or (gpus is not None and gpus.value == 1 and gpus.provenance.place is not None)


def _started_by_torchrun(launch: Launch) -> Fix | None:
    """``FORCE_TORCHRUN=1`` in front of the command, which looks at it; a plain ``python`` does not."""
    edits = launch.set_variable("FORCE_TORCHRUN", "1") if launch.launcher == "llamafactory" else None
    return Fix("put FORCE_TORCHRUN=1 in front of it", Applicability.SAFE, edits) if edits else None
