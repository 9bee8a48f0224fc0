from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.llamafactory import recipe_of
from lintfit.findings.model import Applicability, Fix


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    if recipe is None:
        return
    arguments = recipe.arguments
    asked, off = arguments.stated("gradient_checkpointing"), arguments.get("disable_gradient_checkpointing")
    place = asked.provenance.place if asked is not None else None
    if asked is None or place is None or asked.value is not False or off is None or off.value is not False:
        return
    written = arguments.write(("disable_gradient_checkpointing",), True)
    yield Report(
        place,
        "gradient_checkpointing false switches nothing off: LLaMA-Factory checkpoints unless "
        "disable_gradient_checkpointing is true",
        fix=Fix("disable_gradient_checkpointing: true", Applicability.UNSAFE, written) if written else None,
        help="write disable_gradient_checkpointing: true where it is to be off, else take the key out",
    )
