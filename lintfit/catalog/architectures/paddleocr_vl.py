"""PaddleOCR-VL: SigLIP over images of their own size, a merger of patches, and ERNIE 4.5's shape with a config of its
own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._multimodal import encoder_layers, language_model, part, patches, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

ERNIE4_5 = known("ernie4_5")

REQUIRED = ()
DEFAULTS = defaults("paddleocr_vl")
VISION = defaults("paddleocr_vl.vision_config")
MOST_PATCHES = 14_400
"""Patches of the largest image that the published processor leaves (``max_pixels`` 2,822,400)."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Published configs state what the language model is among the model's own keys."""
    if "text_config" in given:
        return given
    inner = {key: given[key] for key in ERNIE4_5.defaults if key in given and key != "tie_word_embeddings"}
    return {**given, "text_config": inner}


def text_of(config: Config) -> Config:
    """The language model's config, which ties its head unless it says otherwise itself: what published configs say of
    it stands outside and does not reach it (``PaddleOCRVLConfig.__post_init__``)."""
    stated = config.section("text_config").get("tie_word_embeddings")
    tied = config.flag("tie_word_embeddings") or stated is not False
    return part(config, "text_config", ERNIE4_5.defaults, tie_word_embeddings=tied)


def language(config: Config) -> tuple[str, Config]:
    return "paddleocr_vl_text", text_of(config)


def vision_of(config: Config) -> tuple[Config, VisionTower]:
    """The encoder's config and numbers; the size of its grid of positions bounds no image."""
    vision = part(config, "vision_config", VISION)
    merge = vision.size("spatial_merge_size") ** 2
    return vision, replace(tower_of(vision), image_size=None, merge=merge, most=MOST_PATCHES)


def shape(config: Config) -> Shape:
    return replace(ERNIE4_5.shape(text_of(config)), vision=vision_of(config)[1])


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, (vision, tower) = shape(config), vision_of(config)
    name, width = "model.visual.vision_model", tower.hidden
    merged, grid = width * tower.merge, (vision.size("image_size") // tower.patch) ** 2
    found = [
        *patches(f"{name}.embeddings.patch_embedding", vision, bias=True),
        Tensor(f"{name}.embeddings.position_embedding.weight", (grid, width), 1, "embedding"),
        *encoder_layers(tower, f"{name}.encoder.layers.{{}}"),
        *norm(f"{name}.post_layernorm", width, bias=True),
        *norm("model.projector.pre_norm", width, bias=True),
        *linear("model.projector.linear_1", merged, merged, bias=True),
        *linear("model.projector.linear_2", numbers.hidden, merged, bias=True),
    ]
    return (*(replace(tensor, where="vision") for tensor in found), *language_model(ERNIE4_5, text_of(config)))
