"""Idefics 3 and SmolVLM: SigLIP on tiles, pixel shuffle, one linear layer, and Llama."""

from __future__ import annotations

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape, linear
from lintfit.catalog.architectures._multimodal import language_model, part, siglip, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("text_config", "vision_config")
DEFAULTS = defaults("idefics3")
VISION = defaults("idefics3.vision_config")
MOST_TILES = 4 * 4 + 1
"""An image is enlarged to four tiles a side at most, and stands beside them (``Idefics3ImageProcessor``)."""


def language(config: Config) -> tuple[str, Config]:
    model, text = llava.text_of(config)
    return model.name, text


def shape(config: Config) -> Shape:
    model, text = llava.text_of(config)
    vision = tower_of(part(config, "vision_config", VISION))
    tokens = ((vision.image_size or 0) // vision.patch) ** 2 // config.size("scale_factor") ** 2
    numbers: Shape = model.shape(text)
    return replace(numbers, vision=replace(vision, tokens=tokens, tiles=MOST_TILES))


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config)
    vision, hidden = part(config, "vision_config", VISION), model.shape(text).hidden
    shuffled = vision.size("hidden_size", kind="hidden") * config.size("scale_factor") ** 2
    return (
        *siglip(vision, "model.vision_model", pooling=False),
        *linear("model.connector.modality_projection.proj", hidden, shuffled, where="vision"),
        *language_model(model, text, prefix="model.text_model."),
    )
