from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.swift import stated_on, swift_of
from lintfit.findings.model import Applicability, Fix


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = swift_of(context.run)
    if recipe is None or not recipe.arguments.since(3) or not recipe.arguments.complete:
        return
    bits = stated_on(recipe, "quant_bits")
    method = recipe.arguments.get("quant_method")
    if bits is None or (method is not None and method.value not in (None, "None")):
        return
    stored = context.run.settings.get("quantization")
    if stored is not None and stored.value is not None:
        return  # the checkpoint is quantised, and this says how
    count, place = bits
    written = recipe.arguments.write(("quant_method",), "bnb") if count.value in (4, 8) else None
    yield Report(
        place,
        f"quant_bits {count.value} without quant_method quantises nothing: the base stays in 16 or 32 bits",
        fix=Fix("add quant_method bnb", Applicability.UNSAFE, written) if written else None,
        help="add quant_method: bnb for 4 or 8 bits, hqq, eetq or quanto",
    )
