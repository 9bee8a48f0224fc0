from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.llamafactory import recipe_of, stated
from lintfit.findings.model import Applicability, Fix
from lintfit.sources.recipes.llamafactory_model import BITSANDBYTES, quantises_nothing, stored, words_release


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    if recipe is None or recipe.arguments.keys.config is None:
        return  # argparse refuses the word on a command line
    arguments = recipe.arguments
    place = stated(arguments, "quantization_method")
    asked = stated(arguments, "quantization_bit") is not None and stored(arguments) is None
    if place is None or not asked or not quantises_nothing(arguments):
        return
    word = arguments.value("quantization_method")
    right = next(each for each in BITSANDBYTES if each != word)
    written = arguments.write(("quantization_method",), right)
    yield Report(
        place,
        f"quantization_method {word} is not the word for bitsandbytes of LLaMA-Factory {words_release(arguments)}: "
        "quantization_bit quantises nothing, and nobody says so",
        fix=Fix(f"write {right}", Applicability.UNSAFE, written) if written else None,
        help=f"write {right}, or take quantization_method out: bitsandbytes is the default",
    )
