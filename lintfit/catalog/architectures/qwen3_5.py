"""Qwen 3.5 and 3.6, dense: the image encoder of Qwen 3 VL before a language model of gated delta rules."""

from __future__ import annotations

from lintfit.catalog.architectures import known, qwen3_vl
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

QWEN3_5_TEXT = known("qwen3_5_text")

REQUIRED = ("text_config",)
DEFAULTS = defaults("qwen3_5")
CODE = Code(liger=True, text_by_auto=True)
VISION = defaults("qwen3_5.vision_config", deepstack_visual_indexes=[])
NOTES = QWEN3_5_TEXT.notes


def text_of(config: Config) -> Config:
    return part(config, "text_config", QWEN3_5_TEXT.defaults, tie_word_embeddings=config.flag("tie_word_embeddings"))


def language(config: Config) -> tuple[str, Config]:
    return "qwen3_5_text", text_of(config)


def shape(config: Config) -> Shape:
    vision = qwen3_vl.tower_of(part(config, "vision_config", VISION))
    return replace(QWEN3_5_TEXT.shape(text_of(config)), vision=vision)


def tensors(config: Config) -> tuple[Tensor, ...]:
    vision = part(config, "vision_config", VISION)
    return (*qwen3_vl.visual(vision), *language_model(QWEN3_5_TEXT, text_of(config)))
