"""The parts of a model that sees or hears, as front ends freeze them: encoders, what joins them, the language model."""

from __future__ import annotations

from functools import lru_cache

from lintfit.catalog import models
from lintfit.catalog.config import CatalogError
from lintfit.catalog.facts import ModelFacts

ENCODERS = (
    "visual", "vision_tower", "vision_model", "vision", "vpm", "apm", "vit", "audio_tower", "speech_encoder",
    "audio_encoder", "visual_tokenizer", "vte", "sam_model", "vision_backbone",
)  # fmt: skip
"""What ``swift/model/model_arch.py`` has as ``vision_tower`` of its architectures, by the last parts of the names."""
ALIGNERS = (
    "visual.merger", "visual.deepstack_merger_list", "multi_modal_projector", "mm_projector", "mlp1", "aligner",
    "resampler", "connector", "vision_proj", "audio_projector", "mlp_AR", "embed_vision", "embed_audio",
    "img_projection", "projector", "image_projector", "vision2text",
)  # fmt: skip
"""The same of ``aligner``."""


@lru_cache(maxsize=256)
def facts_of(name: str) -> ModelFacts | None:
    """What is known of a model; None for one that is not known or whose config cannot be counted."""
    try:
        return models.find(name)
    except CatalogError:
        return None


def sees(facts: ModelFacts | None) -> bool:
    """Whether a model has an encoder of images or sound."""
    return facts is not None and any(tensor.where == "vision" for tensor in facts.tensors)


def frozen_parts(facts: ModelFacts, encoders: bool, aligners: bool, language: bool) -> tuple[str, ...]:
    """The modules that stay as they are where these are frozen; an aligner inside of an encoder is named apart."""
    parts = _of(facts, ENCODERS) if encoders else []
    projectors = _of(facts, ALIGNERS)
    if aligners:
        parts += [part for part in projectors if not _inside(part, parts)]
    elif encoders:
        parts += [f"!{part}" for part in projectors]
    if language:
        parts += [text for text in ("language_model", "lm_head", "model.layers", "embed_tokens") if _names(facts, text)]
    return tuple(dict.fromkeys(parts))


def linear_of_language(facts: ModelFacts) -> tuple[str, ...]:
    """All linear layers of the language model by their whole names, which no encoder's have."""
    linear = (tensor for tensor in facts.tensors if tensor.where == "layer" and tensor.role in ("linear", "expert"))
    names = dict.fromkeys(tensor.name.removesuffix(".weight") for tensor in linear if tensor.name.endswith(".weight"))
    return tuple(names)


def _of(facts: ModelFacts, names: tuple[str, ...]) -> list[str]:
    """Those of these modules that a model has, without what lies inside another of them."""
    there = [name for name in names if _names(facts, name)]
    return [
        name for name in there if not any(name != other and f".{name}.".startswith(f".{other}.") for other in there)
    ]


def _names(facts: ModelFacts, text: str) -> bool:
    return any(f".{text}." in f".{tensor.name}" for tensor in facts.tensors)


def _inside(part: str, parts: list[str]) -> bool:
    return any(f".{part}.".startswith(f".{other}.") for other in parts)
