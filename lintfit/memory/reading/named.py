"""The models and the GPU that a spec names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from lintfit.catalog import gpus, models
from lintfit.catalog.facts import Gpu, ModelFacts
from lintfit.errors import LintfitError, shown
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.keys import FROZEN_MODEL
from lintfit.memory.spec import DTYPE_BYTES, FrozenModel


def other_model(key: str, value: Any) -> ModelFacts:
    """A model beside the trained one: an id, or a config.json's content."""
    try:
        return model({"model_config": value} if isinstance(value, Mapping) else {"model": value})
    except SpecError as error:
        raise SpecError(f"{key}: {str(error).partition(': ')[2]}") from error


def frozen_models(key: str, value: Any) -> tuple[FrozenModel, ...]:
    """Models beside the trained one: a list of objects with ``model`` or ``model_config``, and how each is loaded.

    Raises :class:`SpecError` for a list that is none, and for a model that is missing, unknown or cannot be read.
    """
    if not isinstance(value, list | tuple):
        raise SpecError(f"{key}: {shown(value)} must be a list of objects such as {{'model': 'Qwen/Qwen2.5-7B'}}")
    return tuple([_frozen_model(f"{key}[{index}]", each) for index, each in enumerate(value)])


def _frozen_model(key: str, value: Any) -> FrozenModel:
    stated = FROZEN_MODEL(key, value)
    named: dict[str, Any] = {name: stated.pop(name) for name in ("model", "model_config") if name in stated}
    try:
        facts = model(named)
    except SpecError as error:
        raise SpecError(f"{key}.{error}") from error
    if "weights_dtype" not in stated and facts.checkpoint_dtype in DTYPE_BYTES:
        stated["weights_dtype"] = facts.checkpoint_dtype
    return FrozenModel(facts, **stated)


def model(obj: Mapping[str, Any]) -> ModelFacts:
    """Facts of the model of a spec: by ``model_config``, a config.json's content, or by ``model``, an id or folder.

    Raises :class:`SpecError` for one that is missing, unknown or cannot be read.
    """
    config, name = obj.get("model_config"), obj.get("model")
    if config is not None:
        if not isinstance(config, Mapping):
            raise SpecError(f"model_config: {shown(config)} is not the content of a config.json (a JSON object)")
        return _from_config(config, name if isinstance(name, str) else "")
    if name is None:
        raise SpecError("model: missing; give a Hugging Face id as model, or a config.json's content as model_config")
    if not isinstance(name, str) or not name.strip():
        raise SpecError(f"model: {shown(name)} is not a Hugging Face id such as 'Qwen/Qwen2.5-7B'")
    try:
        facts = _named(name)
    except LintfitError as error:
        raise SpecError(f"model: {error}") from error
    if facts is None:
        close = models.suggest(name)
        hint = f" (did you mean '{close}'?)" if close else ""
        raise SpecError(f"model: {shown(name)} is not known{hint}; give its config.json's content as model_config")
    return facts


@lru_cache(maxsize=1024)
def _named(model: str) -> ModelFacts | None:
    """A model by its name or folder, looked for once."""
    return models.find(model)


_KNOWN: dict[str, ModelFacts] = {}
_KNOWN_LIMIT = 512


def _from_config(config: Mapping[str, Any], name: str) -> ModelFacts:
    """Facts of a config, the same object for the same config: what is counted of a model is counted once."""
    try:
        key = json.dumps([name, config], sort_keys=True)
    except (TypeError, ValueError) as error:
        raise SpecError(f"model_config: not the content of a config.json ({error})") from error
    if key not in _KNOWN:
        if len(_KNOWN) >= _KNOWN_LIMIT:
            _KNOWN.clear()
        try:
            _KNOWN[key] = models.from_config(config, name)
        except LintfitError as error:
            raise SpecError(f"model_config: {error}") from error
    return _KNOWN[key]


def card(obj: Mapping[str, Any]) -> Gpu | None:
    """The GPU that a spec names; None for none, or for an unknown one whose memory is stated.

    Raises :class:`SpecError` for an unknown one otherwise.
    """
    name = obj.get("gpu")
    if name is None:
        return None
    if not isinstance(name, str):
        raise SpecError(f"gpu: {shown(name)} is not a GPU's name such as 'RTX 3090'")
    found = gpus.lookup(name)
    if found is None:
        close = gpus.suggest(name)
        hint = f" (did you mean '{close}'?)" if close else ""
        if obj.get("gpu_memory_gib") is not None:
            return None
        raise SpecError(f"gpu: {shown(name)} is not known{hint}; give its memory as gpu_memory_gib")
    return found
