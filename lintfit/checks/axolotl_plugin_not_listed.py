from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog import axolotl as catalog
from lintfit.checks.helpers.axolotl import fix, place, recipe_of
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.findings.model import Applicability
from lintfit.sources.recipes.axolotl import AxolotlRecipe


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    plugins = recipe.config.get("plugins").value if recipe is not None else None
    if recipe is None or not isinstance(plugins, list | None):
        return
    listed = [one for one in plugins or () if isinstance(one, str)]
    ours = {catalog.plugin_folder(one) for one in listed}
    if None in ours:
        return  # somebody else's plugin may bring fields of the same name
    for name, keys in _without(recipe, listed).items():
        called = name.rpartition(".")[2]
        what = " and ".join(keys[:2]) + (f" and {len(keys) - 2} more" if len(keys) > 2 else "")
        yield Report(
            place(context, recipe.config.get(keys[0])),
            f"nothing reads {what}: {called} is not among the plugins, and the run goes on without what was asked for",
            fix=fix(f"list {name}", Applicability.UNSAFE, recipe.write_key("plugins", [*listed, name])),
            help=f"add {name} to plugins, or take {keys[0]} out",
        )


def _without(recipe: AxolotlRecipe, listed: list[str]) -> dict[str, list[str]]:
    """The keys that are switched on for a plugin that is not listed, by its name."""
    found: dict[str, list[str]] = {}
    folders = {catalog.plugin_folder(one) for one in listed}
    for key in recipe.config.keys.stated:
        name = catalog.plugin_of(key)
        own = catalog.known_keys().get(key) is None and recipe.config.states(key)
        if name is not None and own and catalog.plugin_folder(name) not in folders:
            found.setdefault(name, []).append(key)
    return found
