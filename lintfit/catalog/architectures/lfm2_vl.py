"""LFM 2 VL: SigLIP 2 over squares of an image, four patches to a token, and LFM 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known, lfm2
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._multimodal import (
    SIGLIP,
    encoder_layers,
    language_model,
    part,
    pooling_head,
    tower_of,
)
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

LFM2 = known("lfm2")

REQUIRED = ("text_config",)
DEFAULTS = defaults("lfm2_vl", tile_size=512, max_tiles=10, use_thumbnail=True)
VISION: Mapping[str, Any] = {
    **{key: value for key, value in SIGLIP.items() if key != "image_size"},
    "num_patches": 256,
    "vision_use_head": True,
}


def text_of(config: Config) -> Config:
    """The language model's part, by whichever names it has."""
    text = {**lfm2.normalised(config.section("text_config")), "tie_word_embeddings": config.flag("tie_word_embeddings")}
    return Config(text, LFM2.defaults, f"{config.origin}: text_config")


def language(config: Config) -> tuple[str, Config]:
    return "lfm2", text_of(config)


def vision_of(config: Config) -> Config:
    """The encoder's part; what it gets of an image are squares of ``tile_size`` pixels."""
    return part(config, "vision_config", VISION, image_size=config.size("tile_size"))


def tower(config: Config) -> VisionTower:
    numbers = tower_of(vision_of(config))
    side = (numbers.image_size or 0) // numbers.patch // config.size("downsample_factor")
    return replace(numbers, tokens=side * side, tiles=config.size("max_tiles") + config.flag("use_thumbnail"))


def shape(config: Config) -> Shape:
    return replace(LFM2.shape(text_of(config)), vision=tower(config))


def tensors(config: Config) -> tuple[Tensor, ...]:
    text, vision, numbers = text_of(config), vision_of(config), tower(config)
    width, name, projector = numbers.hidden, "model.vision_tower", "model.multi_modal_projector"
    merged, bias = width * config.size("downsample_factor") ** 2, config.flag("projector_bias")
    inner = config.size("projector_hidden_size", kind="hidden")
    patch = vision.size("num_channels") * numbers.patch**2
    rows = vision.size("num_patches", kind="positions")
    found = [
        *linear(f"{name}.embeddings.patch_embedding", width, patch, bias=True),
        Tensor(f"{name}.embeddings.position_embedding.weight", (rows, width), 1, "embedding"),
        *encoder_layers(numbers, f"{name}.encoder.layers.{{}}"),
        *norm(f"{name}.post_layernorm", width, bias=True),
        *(pooling_head(numbers, f"{name}.head") if vision.flag("vision_use_head") else []),
        *(norm(f"{projector}.layer_norm", merged, bias=True) if config.flag("projector_use_layernorm") else []),
        *linear(f"{projector}.linear_1", inner, merged, bias=bias),
        *linear(f"{projector}.linear_2", LFM2.shape(text).hidden, inner, bias=bias),
    ]
    return (*(replace(tensor, where="vision") for tensor in found), *language_model(LFM2, text))
