"""The models of a run beside the one that it trains: PPO's, and those that the script only asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lintfit.catalog.config import CatalogError
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.spec import DTYPE_BYTES, FrozenModel
from lintfit.run.facts import facts_of
from lintfit.settings.model import Setting

Asked = tuple[tuple[FrozenModel, ...], tuple[str, ...]]


def inference_models(settings: Mapping[str, Setting], folders: tuple[Path, ...]) -> Asked:
    """The models that the script only asks, and a line for each that nobody knows and for what runs out of sight."""
    found: list[FrozenModel] = []
    lines: list[str] = []
    setting = settings.get("frozen_models")
    for entry in setting.value if setting is not None else ():
        name = entry["model"]
        facts = _facts(name, folders) if name is not None else None
        if facts is None:
            shown = f"'{name}', which is not known" if name is not None else "whose name is not statically known"
            lines.append(f"a model beside the one that is trained, {shown}")
            continue
        stated: dict[str, Any] = {key: value for key, value in entry.items() if key != "model"}
        if facts.checkpoint_dtype in DTYPE_BYTES:
            stated.setdefault("weights_dtype", facts.checkpoint_dtype)
        found.append(FrozenModel(facts, **stated))
    others = (settings[name].value for name in ("uncounted", "own_evaluation") if name in settings)
    return tuple(found), (*lines, *others)


def of_ppo(settings: Mapping[str, Setting], folders: tuple[Path, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """PPO's models beside the policy, and what is missing of them; until then they are taken to be like it."""
    found: dict[str, Any] = {}
    missing = []
    for name in ("reward_model", "value_model"):
        setting = settings.get(name)
        if setting is None:
            continue
        facts = _facts(setting.value, folders) if isinstance(setting.value, str) else None
        if facts is None:
            shown = f"'{setting.value}', which is" if isinstance(setting.value, str) else "whose name is"
            missing.append(f"the {name.replace('_', ' ')}, {shown} not known")
        found[name] = facts
    return found, tuple(missing)


def _facts(name: str, folders: tuple[Path, ...]) -> ModelFacts | None:
    """A model by the name that a file gives it; None, too, where its config is not in order or cannot be counted."""
    try:
        return facts_of(name, folders)
    except CatalogError:
        return None
