"""What the rules about axolotl's recipes ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lintfit.findings.model import Applicability, Fix
from lintfit.settings.model import Place

if TYPE_CHECKING:
    from lintfit.checks.helpers.context import RunContext
    from lintfit.documents.model import FileEdit
    from lintfit.run.model import Run
    from lintfit.sources.recipes.axolotl import AxolotlRecipe
    from lintfit.sources.recipes.keys import Stated


def recipe_of(run: Run) -> AxolotlRecipe | None:
    """The recipe of a run of axolotl that is at hand; None for any other run."""
    recipe = run.recipe
    if recipe is None or recipe.dialect != "axolotl" or recipe.missing is not None:
        return None
    return cast("AxolotlRecipe", recipe)


def place(context: RunContext, *found: Stated) -> Place:
    """Where the first of these keys stands that is written, else the run's launch line."""
    from lintfit.checks.helpers.runs import anchor

    written = (each.provenance.place for each in found)
    return next((each for each in written if each is not None), anchor(context.run))


def fix(message: str, how: Applicability, *edits: tuple[FileEdit, ...] | None) -> Fix | None:
    """A fix of several edits; None where one of them cannot be made."""
    made = [each for each in edits if each is not None]
    return Fix(message, how, tuple(edit for each in made for edit in each)) if len(made) == len(edits) else None
