"""PaliGemma 1 and 2: SigLIP, one linear layer, and Gemma 1 or 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._architecture import Architecture
from lintfit.catalog.architectures._blocks import Shape, linear
from lintfit.catalog.architectures._multimodal import SIGLIP, language_model, part, siglip, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

GEMMA, GEMMA2 = known("gemma"), known("gemma2")

REQUIRED = ("text_config",)
TEXT: Mapping[str, Any] = {
    "hidden_size": 2048,
    "num_hidden_layers": 18,
    "intermediate_size": 16384,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "vocab_size": 257152,
}
"""What transformers takes where a config has no ``text_config`` at all (``PaliGemmaConfig``)."""
VISION: Mapping[str, Any] = {
    "model_type": "siglip_vision_model",
    "intermediate_size": 4096,
    "hidden_size": 1152,
    "patch_size": 14,
    "image_size": 224,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "vision_use_head": False,
}
DEFAULTS = defaults("paligemma", text_config=TEXT, vision_config=VISION)
CODE = Code(liger=True)


def text_of(config: Config) -> tuple[Architecture, Config]:
    """The language model: and its config."""
    second = config.section("text_config").get("model_type") == "gemma2"
    model = GEMMA2 if second else GEMMA
    tied = config.flag("tie_word_embeddings")
    return model, part(config, "text_config", model.defaults, tie_word_embeddings=tied)


def language(config: Config) -> tuple[str, Config]:
    model, text = text_of(config)
    return model.name, text


def shape(config: Config) -> Shape:
    model, text = text_of(config)
    tower = tower_of(part(config, "vision_config", SIGLIP))
    numbers: Shape = model.shape(text)
    return replace(numbers, vision=replace(tower, tokens=((tower.image_size or 0) // tower.patch) ** 2))


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = text_of(config)
    vision = part(config, "vision_config", SIGLIP)
    width, out = vision.size("hidden_size", kind="hidden"), config.size("projection_dim", kind="hidden")
    return (
        *siglip(vision, "model.vision_tower", pooling=vision.flag("vision_use_head", True)),
        *linear("model.multi_modal_projector.linear", out, width, bias=True, where="vision"),
        *language_model(model, text),
    )
