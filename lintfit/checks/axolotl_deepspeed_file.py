from __future__ import annotations

from collections.abc import Iterator, Mapping

from lintfit.checks.helpers.axolotl import place, recipe_of
from lintfit.checks.helpers.context import Report, RunContext


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    if recipe is None:
        return
    named, used = recipe.config.get("deepspeed"), recipe.settings.get("deepspeed")
    if isinstance(named.value, str) and used is not None and isinstance(used.value, Mapping):
        yield Report(
            place(context, named),
            f"{named.value} comes with axolotl and is not among these files: where it is missing the run stops, and it "
            "is judged by what axolotl's own says",
            help="axolotl fetch deepspeed_configs",
        )
