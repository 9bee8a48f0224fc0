"""Aya Vision: SigLIP, four patches to a token, a gated projector, and Command R7B or Command R."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._multimodal import language_model
from lintfit.catalog.architectures._towers import encoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("text_config",)
TEXT = "cohere2"
VISION: Mapping[str, Any] = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "patch_size": 14,
    "image_size": 384,
    "num_hidden_layers": 26,
    "num_attention_heads": 14,
    "vision_use_head": False,
}
"""transformers ``AyaVisionConfig``: what a model without ``vision_config`` has."""
DEFAULTS = defaults("aya_vision", vision_config=VISION)
MOST_TILES = 12 + 1
"""``max_patches`` of the processor, and the whole image beside them."""
PROJECTOR = "model.multi_modal_projector"


def language(config: Config) -> tuple[str, Config]:
    model, text = llava.text_of(config, TEXT)
    return model.name, text


def shuffled(config: Config) -> int:
    """Patches that pixel shuffle puts into one token."""
    return config.size("downsample_factor") ** 2


def shape(config: Config) -> Shape:
    model, text = llava.text_of(config, TEXT)
    vision = encoder(config, "siglip_vision_model").numbers
    tokens = ((vision.image_size or 0) // vision.patch) ** 2 // shuffled(config)
    numbers: Shape = model.shape(text)
    return replace(numbers, vision=replace(vision, tokens=tokens, tiles=MOST_TILES))


def between(config: Config, hidden: int) -> int:
    """Elements between the projector's two layers, gate and what it gates together."""
    stated = config.get("alignment_intermediate_size") is not None
    width = config.size("alignment_intermediate_size", kind="intermediate") if stated else hidden
    if width % 2:
        raise config.error("alignment_intermediate_size", "must be even")
    return width


def tensors(config: Config) -> tuple[Tensor, ...]:
    merged = encoder(config, "siglip_vision_model").numbers.hidden * shuffled(config)
    return (*norm(f"{PROJECTOR}.layernorm", merged, bias=True, where="vision"), *without_norm(config))


def without_norm(config: Config) -> tuple[Tensor, ...]:
    """All tensors but the projector's norm."""
    model, text = llava.text_of(config, TEXT)
    vision, hidden = encoder(config, "siglip_vision_model"), model.shape(text).hidden
    wide = between(config, hidden)
    return (
        *vision.tensors("model.vision_tower"),
        *linear(f"{PROJECTOR}.linear_1", wide, vision.numbers.hidden * shuffled(config), bias=True, where="vision"),
        *linear(f"{PROJECTOR}.linear_2", hidden, wide // 2, bias=True, where="vision"),
        *language_model(model, text),
    )
