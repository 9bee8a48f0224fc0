from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.llamafactory import distributed, recipe_of, stated
from lintfit.findings.model import Applicability, Fix
from lintfit.sources.launchers.launch import Launch

_SINCE = "0.8.3"


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    if recipe is None or recipe.launch.assumed or not recipe.arguments.since(_SINCE):
        return
    place = stated(recipe.arguments, "deepspeed")
    if place is None or recipe.launch.launcher not in ("llamafactory", "python"):
        return
    visible = recipe.launch.settings.get("visible_devices")
    alone = recipe.launch.launcher == "python" or (visible is not None and distributed(context, recipe) is False)
    if alone and distributed(context, recipe) is False:
        yield Report(
            place,
            "DeepSpeed with one process that torchrun did not start: LLaMA-Factory stops with ValueError (Please use "
            "`FORCE_TORCHRUN=1` to launch DeepSpeed training.)",
            fix=_started_by_torchrun(recipe.launch),
            help="put FORCE_TORCHRUN=1 in front of llamafactory-cli, or take deepspeed out",
        )


def _started_by_torchrun(launch: Launch) -> Fix | None:
    """``FORCE_TORCHRUN=1`` in front of the command, which looks at it; a plain ``python`` does not."""
    edits = launch.set_variable("FORCE_TORCHRUN", "1") if launch.launcher == "llamafactory" else None
    return Fix("put FORCE_TORCHRUN=1 in front of it", Applicability.SAFE, edits) if edits else None
