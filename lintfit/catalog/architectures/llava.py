"""LLaVA 1.5 and other models of its class: CLIP, a two-layer projector, and any language model lintfit knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from lintfit.catalog import architectures
from lintfit.catalog.architectures._blocks import Shape, linear
from lintfit.catalog.architectures._multimodal import CLIP, SIGLIP, clip, language_model, part, siglip, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED = ("text_config",)
VISION: Mapping[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}
"""transformers ``LlavaConfig``: a model without ``vision_config`` has CLIP ViT-L/14 at 336 pixels."""
DEFAULTS: Mapping[str, Any] = {
    "vision_config": {"model_type": "clip_vision_model", **VISION},
    "multimodal_projector_bias": True,
    "tie_word_embeddings": False,
}


def text_of(config: Config) -> tuple[ModuleType, Config]:
    """The language model's module and config."""
    model_type = str(config.section("text_config").get("model_type") or "llama")
    module = architectures.find(model_type)
    if module is None or hasattr(module, "text_of"):
        raise config.error("text_config", f"model_type {model_type!r} must be a language model that lintfit knows")
    tied = config.flag("tie_word_embeddings")
    return module, part(config, "text_config", module.DEFAULTS, tie_word_embeddings=tied)


def language(config: Config) -> tuple[str, Config]:
    module, text = text_of(config)
    return module.__name__.rpartition(".")[2], text


def vision_of(config: Config) -> tuple[bool, Config]:
    """Whether the tower is SigLIP, and its config."""
    is_siglip = config.section("vision_config").get("model_type") == "siglip_vision_model"
    return is_siglip, part(config, "vision_config", SIGLIP if is_siglip else CLIP)


def shape(config: Config) -> Shape:
    module, text = text_of(config)
    vision = tower_of(vision_of(config)[1])
    side = (vision.image_size or 0) // vision.patch
    numbers: Shape = module.shape(text)
    return replace(numbers, vision=replace(vision, tokens=side * side))


def tensors(config: Config) -> tuple[Tensor, ...]:
    module, text = text_of(config)
    is_siglip, vision = vision_of(config)
    name = "model.vision_tower"
    tower = siglip(vision, name, pooling=vision.flag("vision_use_head", True)) if is_siglip else clip(vision, name)
    hidden, width = module.shape(text).hidden, vision.size("hidden_size", kind="hidden")
    bias, projector = config.flag("multimodal_projector_bias"), "model.multi_modal_projector"
    return (
        *tower,
        *linear(f"{projector}.linear_1", hidden, width, bias=bias, where="vision"),
        *linear(f"{projector}.linear_2", hidden, hidden, bias=bias, where="vision"),
        *language_model(module, text),
    )
