"""The shape of a run's models: a ``config.json``, a local folder, the catalogue, or the Hugging Face cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lintfit.catalog.config import CatalogError, UnknownArchitectureError
from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.quantized import quantization_section
from lintfit.documents import door
from lintfit.documents.paths import is_below, resolved
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.placeholders import is_to_fill_in
from lintfit.frozen import frozen, replace
from lintfit.run.precedence import Sources
from lintfit.settings.model import AUTO, UNKNOWN, Provenance, Setting

_OF_IMAGES = lazy_pattern(
    r"(torchvision\.models|timm|diffusers|detectron2|mmcv|mmdet|mmseg|mmpretrain|ultralytics|segmentation_models_pytorch)\."
    r"|torch\.nn\.Conv[123]d$"
)
_TRANSFORMERS = lazy_pattern(r"transformers\.\w*(Auto|Model|For[A-Z])|torch\.nn\.(Transformer\w*|MultiheadAttention)$")
"""Calls that make a language model, or may."""


@frozen
class FoundModel:
    """A run's model as the script loads it, or what the user has to state for it to be known."""

    facts: ModelFacts | None
    missing: tuple[str, ...] = ()


def find_model(sources: Sources, settings: Mapping[str, Setting], folders: tuple[Path, ...]) -> FoundModel:
    """The model's facts: a named ``config.json``, a local folder, the catalogue, or the Hugging Face cache.

    Raises CatalogError for a config that the user named and that is not in order. One that only a file names, and one
    of an architecture that lintfit cannot count, makes the model unknown.
    """
    try:
        facts = _facts(sources.options.model_config, settings.get("model"), folders)
    except UnknownArchitectureError as error:
        detail = "" if _lies_outside(settings.get("model"), folders) else f" ({error})"
        return FoundModel(None, (f"a config.json of a model_type that lintfit can count{detail}",))
    if facts is None:
        other = _no_language_model(sources)
        return FoundModel(None, missing_model(settings) if other is None else (other,))
    return FoundModel(_as_loaded(facts, settings))


def _no_language_model(sources: Sources) -> str | None:
    """What a script trains that is none: a model of diffusers, or one of images that no load of transformers' makes."""
    if sources.script is None or sources.options.stated("model"):
        return None
    reading = sources.script.reading
    load = reading.found.trained_load
    made = [load] if load is not None else [each for each in reading.records if each.taken is not False]
    kind = next((each.function for each in made if _OF_IMAGES.match(each.function)), None)
    if kind is None or (load is None and any(_TRANSFORMERS.match(each.function) for each in made)):
        return None
    name = sources.script.document.path.name
    return f"a language model, which {name} does not train ({kind}); lintfit counts no others"


def _facts(named: Path | None, model: Setting | None, folders: tuple[Path, ...]) -> ModelFacts | None:
    from lintfit.catalog import models

    if named is not None:
        return models.from_directory(named)
    if model is None or not isinstance(model.value, str) or not model.value:
        return None
    try:
        return facts_of(model.value, folders)
    except UnknownArchitectureError:
        raise
    except CatalogError:
        if model.provenance.kind == "option":
            raise
        return None


def _as_loaded(facts: ModelFacts, settings: Mapping[str, Setting]) -> ModelFacts:
    """The model as the script's class loads it: the language model alone where it is a class for that."""
    only = settings.get("text_only")
    if only is None:
        return facts
    from lintfit.catalog.text_only import text_only

    alone = only.value is True or (only.value is AUTO and facts.code.text_by_auto)
    return text_only(facts) if alone else facts


def _lies_outside(model: Setting | None, folders: tuple[Path, ...]) -> bool:
    """Whether a file of the tree names a model's folder that is none of the tree: nothing of what it says is shown."""
    if model is None or not isinstance(model.value, str) or model.provenance.kind == "option":
        return False
    top = resolved(door.repository_of(Path.cwd()) or Path())
    found = (resolved(folder / model.value / "config.json") for folder in (*folders, Path()))
    return any(door.is_file(path) and not is_below(path, (top,)) for path in found)


def facts_of(name: str, folders: tuple[Path, ...]) -> ModelFacts | None:
    """The model of a name: a folder below one of ``folders``, else what is known under it."""
    from lintfit.catalog import models

    for folder in folders:
        if door.is_file(folder / name / "config.json"):
            return models.from_directory(folder / name, name=name)
    return models.find(name)


def missing_model(settings: Mapping[str, Setting]) -> tuple[str, ...]:
    """What the user has to state for a run whose model is not known."""
    model = settings.get("model")
    if model is None or not isinstance(model.value, str) or _is_to_fill_in(model.value):
        return ("the model (--model, or model in lintfit.toml)",)
    from lintfit.catalog import models

    near = models.suggest(model.value)
    meant = f"; did you mean {near}?" if near else ""
    return (f'the shape of "{model.value}" (--model-config FILE, or model-config in lintfit.toml{meant})',)


def _is_to_fill_in(name: str) -> bool:
    """Whether a name stands for another one: ``path/to/model``, ``<your path>``, ``xxx``, a variable."""
    return is_to_fill_in(name) or name.startswith(("<", "$"))


def with_checkpoint_dtype(settings: dict[str, Setting], facts: ModelFacts | None) -> dict[str, Setting]:
    """The settings with the checkpoint's dtype in place of "auto"; what the checkpoint does not say stays.

    So it is, too, where nobody asks for a dtype and the model's own code does not heed the library's default.
    """
    weights = settings.get("weights_dtype")
    if weights is None or facts is None or facts.checkpoint_dtype is None:
        return settings
    own = weights.provenance.kind in ("default", "assumed") and facts.code.own_dtype
    if weights.value is not AUTO and not own:
        return settings
    if own:
        weights = replace(weights, provenance=replace(weights.provenance, detail="the model's own code decides it"))
    elif _is_local(settings.get("model")) or facts.larger is not None:
        what = "folder" if _is_local(settings.get("model")) else "model of this name"
        why = f"the {what} is taken to hold the checkpoint that it is named after, in its dtype"
        weights = replace(weights, provenance=Provenance("assumed", why))
    return {**settings, "weights_dtype": replace(weights, value=facts.checkpoint_dtype)}


def with_checkpoint_quantization(settings: dict[str, Setting], facts: ModelFacts | None) -> dict[str, Setting]:
    """The settings with the quantization of a checkpoint whose ``config.json`` is at hand, where no file says it."""
    stated = settings.get("quantization")
    stored = facts.stored if facts is not None else None
    if facts is None or stored is None or (stated is not None and stated.provenance.kind != "derived"):
        return settings
    if not quantization_section(facts.config):
        return settings
    why = Provenance("derived", "the checkpoint's config.json says that it is quantized")
    found = Setting("quantization", stored.method or UNKNOWN, why).over(stated)
    return {**settings, "quantization": found}


def _is_local(model: Setting | None) -> bool:
    """Whether a model is a folder of somebody's machine, known only by its name."""
    return model is not None and isinstance(model.value, str) and model.value.startswith(("/", "~", "./", "../"))
