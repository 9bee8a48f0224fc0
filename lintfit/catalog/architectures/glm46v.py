"""GLM 4.6V as transformers' class of that name has it: GLM 4.1V's or 4.5V's parts, whichever the config names."""

from __future__ import annotations

from lintfit.catalog.architectures import glm4v, glm4v_moe, known
from lintfit.catalog.architectures._architecture import Architecture
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = glm4v.REQUIRED
DEFAULTS = defaults("glm46v")
MIXED = "glm4v_moe_text"


def _kind(config: Config) -> str:
    """The language model's ``model_type``; that without experts where none is stated."""
    return str(config.section("text_config").get("model_type") or "glm4v_text")


def language(config: Config) -> tuple[str, Config]:
    """The language model. Its head is tied only where the config says so at the top."""
    tied = config.flag("tie_word_embeddings")
    if _kind(config) == MIXED:
        return MIXED, part(config, "text_config", glm4v_moe.TEXT, tie_word_embeddings=tied, use_qk_norm=False)
    own = {"tie_word_embeddings": tied, "attention_bias": True, "head_dim": None}
    return "glm4v_text", part(config, "text_config", glm4v.TEXT, **own)


def _module(config: Config) -> Architecture:
    return known("glm4_moe" if _kind(config) == MIXED else "glm4")


def shape(config: Config) -> Shape:
    numbers: Shape = _module(config).shape(language(config)[1])
    return replace(numbers, vision=glm4v.tower_of(glm4v.vision_of(config)))


def tensors(config: Config) -> tuple[Tensor, ...]:
    return (*glm4v.visual(glm4v.vision_of(config)), *language_model(_module(config), language(config)[1]))
