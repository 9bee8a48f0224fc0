"""What rules ask about a run of LLaMA-Factory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lintfit.run.model import Run
from lintfit.settings.model import Place, is_count

if TYPE_CHECKING:
    from lintfit.checks.helpers.context import RunContext
    from lintfit.sources.recipes.llamafactory import LlamaFactoryRecipe
    from lintfit.sources.recipes.llamafactory_arguments import LlamaFactoryArguments

LAUNCHERS = frozenset({"torchrun", "torch.distributed.launch", "deepspeed"})
"""Launchers under which a single process counts as distributed, too."""


def recipe_of(run: Run) -> LlamaFactoryRecipe | None:
    """The recipe of a run of LLaMA-Factory that is at hand, and that no other backend takes over; None for others."""
    if run.recipe is None or run.recipe.dialect != "llamafactory" or run.recipe.missing is not None:
        return None
    from lintfit.sources.recipes.llamafactory import LlamaFactoryRecipe
    from lintfit.sources.recipes.llamafactory_engine import other_backend

    recipe = run.recipe if isinstance(run.recipe, LlamaFactoryRecipe) else None
    return recipe if recipe is not None and recipe.trains and other_backend(recipe.arguments) is None else None


def stated(arguments: LlamaFactoryArguments, *names: str) -> Place | None:
    """Where one of these fields is stated as something, None where nobody does so."""
    for name in names:
        found = arguments.stated(name)
        if found is not None and found.value not in (None, False, "") and found.provenance.place is not None:
            return found.provenance.place
    return None


def distributed(context: RunContext, recipe: LlamaFactoryRecipe) -> bool | None:
    """Whether processes find one another through torch.distributed; None where nobody can tell how many there are."""
    from lintfit.sources.recipes.llamafactory_engine import enabled

    launcher = recipe.launch.launcher
    if not recipe.launch.assumed and (launcher in LAUNCHERS or enabled(recipe.arguments, "FORCE_TORCHRUN")):
        return True
    gpus: Any = context.run.settings.get("gpus")
    if gpus is None or not is_count(gpus.value):
        return None
    # A recipe alone may be started otherwise on one GPU; on several the command starts a process on each.
    return True if gpus.value > 1 else None if recipe.launch.assumed else False
