"""torchtune's registry: its recipes, the keys that they read, and its configs (``tools/update_torchtune.py``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lintfit.frozen import frozen
from lintfit.resources import packaged

_DATA = Path(__file__).parent / "data" / "torchtune.json"


@frozen
class Recipe:
    """A recipe of the registry: ``keys`` are those that its newest code reads, ``elsewhere`` those that only older code
    or the client for checkpoints reads."""

    distributed: bool
    keys: frozenset[str]
    elsewhere: frozenset[str]


@frozen
class Config:
    """A config of the registry: the recipe that it is for, and what of its keys decides memory."""

    recipe: str
    facts: Mapping[str, Any]


@frozen
class Registry:
    """All of them by name; ``version`` is torchtune's that was read."""

    version: str
    recipes: Mapping[str, Recipe]
    configs: Mapping[str, Config]

    def recipe(self, name: str) -> Recipe | None:
        """A recipe by its name or by the path of a copy of it (``tune cp``)."""
        return self.recipes.get(name) or self.recipes.get(name.rpartition("/")[2].removesuffix(".py"))


@cache
def registry() -> Registry:
    """What torchtune's registry lists."""
    content = json.loads(packaged(_DATA))
    shared, usual = frozenset(content["shared"]), content["usual"]
    recipes = {
        name: Recipe(row["distributed"], shared.union(row["keys"]), frozenset(row["elsewhere"]))
        for name, row in content["recipes"].items()
    }
    configs = {
        name: Config(recipe, {key: value for key, value in {**usual, **facts}.items() if value is not None})
        for name, (recipe, facts) in content["configs"].items()
    }
    return Registry(content["version"], recipes, configs)
