"""The shape of a run's models: a ``config.json``, a local folder, the catalogue, or the Hugging Face cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lintfit.catalog.config import CatalogError
from lintfit.catalog.facts import ModelFacts
from lintfit.run.precedence import Sources
from lintfit.settings import AUTO, Provenance, Setting

_OWN_DTYPE = frozenset({"qwen", "chatglm"})
"""Models whose code on the hub makes or casts its layers in the checkpoint's dtype (``modeling_qwen.py``: bf16 unless
the config says otherwise; ``modeling_chatglm.py``: ``config.torch_dtype``)."""


def find_facts(sources: Sources, settings: Mapping[str, Setting], folders: tuple[Path, ...]) -> ModelFacts | None:
    """The model's facts: a named ``config.json``, a local folder, the catalogue, or the Hugging Face cache.

    Raises CatalogError for a config that the user named and that cannot be used; one that only a file names makes the
    model unknown.
    """
    model, named = settings.get("model"), sources.options.model_config
    if named is None and (model is None or not isinstance(model.value, str) or not model.value):
        return None
    from lintfit.catalog import models

    if named is not None:
        return models.from_directory(named)
    assert model is not None
    try:
        return facts_of(model.value, folders)
    except CatalogError:
        if model.provenance.kind == "option":
            raise
        return None


def as_loaded(facts: ModelFacts | None, settings: Mapping[str, Setting]) -> ModelFacts | None:
    """The model as the script's class loads it: the language model alone where it is a class for that."""
    only = settings.get("text_only")
    if facts is None or only is None or only.value is not True:
        return facts
    from lintfit.catalog.models import text_only

    return text_only(facts)


def facts_of(name: str, folders: tuple[Path, ...]) -> ModelFacts | None:
    """The model of a name: a folder below one of ``folders``, else what is known under it."""
    from lintfit.catalog import models

    for folder in folders:
        if (folder / name / "config.json").is_file():
            return models.from_directory(folder / name, name=name)
    return models.find(name)


def missing_model(settings: Mapping[str, Setting]) -> tuple[str, ...]:
    """What the user has to state for a run whose model is not known."""
    model = settings.get("model")
    if model is None or not isinstance(model.value, str):
        return ("the model (--model, or model in lintfit.toml)",)
    from lintfit.catalog import models

    near = models.suggest(model.value)
    meant = f"; did you mean {near}?" if near else ""
    return (f'the shape of "{model.value}" (--model-config FILE, or model-config in lintfit.toml{meant})',)


def with_checkpoint_dtype(settings: dict[str, Setting], facts: ModelFacts | None) -> dict[str, Setting]:
    """The settings with the checkpoint's dtype in place of "auto"; what the checkpoint does not say stays.

    So it is, too, where nobody asks for a dtype and the model's own code does not heed the library's default.
    """
    weights = settings.get("weights_dtype")
    if weights is None or facts is None or facts.checkpoint_dtype is None:
        return settings
    own = weights.provenance.kind in ("default", "assumed") and facts.model_type in _OWN_DTYPE
    if weights.value is not AUTO and not own:
        return settings
    if own:
        weights = replace(weights, provenance=replace(weights.provenance, detail="the model's own code decides it"))
    elif _is_local(settings.get("model")):
        why = "the folder is taken to hold the checkpoint that it is named after, in its dtype"
        weights = replace(weights, provenance=Provenance("assumed", why))
    return {**settings, "weights_dtype": replace(weights, value=facts.checkpoint_dtype)}


def _is_local(model: Setting | None) -> bool:
    """Whether a model is a folder of somebody's machine, known only by its name."""
    return model is not None and isinstance(model.value, str) and model.value.startswith(("/", "~", "./", "../"))
