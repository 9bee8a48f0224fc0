"""Qwen 3.5 and 3.6 with routed experts: 35B-A3B, 122B-A10B, 397B-A17B."""

from __future__ import annotations

from lintfit.catalog.architectures import known, qwen3_5, qwen3_vl
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

QWEN3_5_MOE_TEXT = known("qwen3_5_moe_text")

REQUIRED = ("text_config",)
DEFAULTS = defaults("qwen3_5_moe")
CODE = Code(liger=True, text_by_auto=True)
NOTES = QWEN3_5_MOE_TEXT.notes


def text_of(config: Config) -> Config:
    return part(
        config, "text_config", QWEN3_5_MOE_TEXT.defaults, tie_word_embeddings=config.flag("tie_word_embeddings")
    )


def language(config: Config) -> tuple[str, Config]:
    return "qwen3_5_moe_text", text_of(config)


def shape(config: Config) -> Shape:
    vision = qwen3_vl.tower_of(part(config, "vision_config", qwen3_5.VISION))
    return replace(QWEN3_5_MOE_TEXT.shape(text_of(config)), vision=vision)


def tensors(config: Config) -> tuple[Tensor, ...]:
    vision = part(config, "vision_config", qwen3_5.VISION)
    return (*qwen3_vl.visual(vision), *language_model(QWEN3_5_MOE_TEXT, text_of(config)))
