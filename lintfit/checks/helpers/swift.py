"""What rules ask about a run of ms-swift."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lintfit.run.model import Run
from lintfit.settings.model import Place

if TYPE_CHECKING:
    from lintfit.sources.recipes.keys import Stated
    from lintfit.sources.recipes.swift import SwiftRecipe


def swift_of(run: Run) -> SwiftRecipe | None:
    """The run's recipe where ms-swift trains from it."""
    if run.recipe is None or run.recipe.dialect != "swift":
        return None
    from lintfit.sources.recipes.swift import SwiftRecipe

    return run.recipe if isinstance(run.recipe, SwiftRecipe) else None


def stated_on(recipe: SwiftRecipe, *names: str) -> tuple[Stated, Place] | None:
    """A field that somebody states as something, and where; None where nobody does, or as false or none."""
    found = recipe.arguments.stated(*names)
    place = found.provenance.place if found is not None else None
    if found is None or place is None or found.value in (None, False, "", "None", 0):
        return None
    return found, place
