"""Qwen 3 VL with routed experts: 30B-A3B, 235B-A22B."""

from __future__ import annotations

from lintfit.catalog.architectures import known, qwen3_vl
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

QWEN3_MOE = known("qwen3_moe")

REQUIRED = ("text_config",)
DEFAULTS = defaults("qwen3_vl_moe")
CODE = Code(liger=True)


def text_of(config: Config) -> Config:
    return part(config, "text_config", QWEN3_MOE.defaults, tie_word_embeddings=config.flag("tie_word_embeddings"))


def language(config: Config) -> tuple[str, Config]:
    return "qwen3_moe", text_of(config)


def shape(config: Config) -> Shape:
    return replace(QWEN3_MOE.shape(text_of(config)), vision=qwen3_vl.shape(config).vision)


def tensors(config: Config) -> tuple[Tensor, ...]:
    vision = part(config, "vision_config", qwen3_vl.VISION)
    return (*qwen3_vl.visual(vision), *language_model(QWEN3_MOE, text_of(config)))
