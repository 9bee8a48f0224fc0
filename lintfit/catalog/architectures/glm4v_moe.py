"""GLM 4.5V and 4.6V: GLM 4.5 Air behind GLM 4.1V's image encoder."""

from __future__ import annotations

from lintfit.catalog.architectures import glm4v, known
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

GLM4_MOE = known("glm4_moe")

REQUIRED = glm4v.REQUIRED
DEFAULTS = defaults("glm4v_moe")
CODE = Code(liger=True)
NOTES = GLM4_MOE.notes
TEXT = defaults("glm4v_moe.text_config", use_qk_norm=False)  # no key of this class


def text_of(config: Config) -> Config:
    """The language model's part. It never norms its queries and keys, whatever ``use_qk_norm`` says."""
    tied = config.flag("tie_word_embeddings") or bool(config.section("text_config").get("tie_word_embeddings"))
    return part(config, "text_config", TEXT, tie_word_embeddings=tied, use_qk_norm=False)


def language(config: Config) -> tuple[str, Config]:
    return "glm4v_moe_text", text_of(config)


def shape(config: Config) -> Shape:
    return replace(GLM4_MOE.shape(text_of(config)), vision=glm4v.tower_of(glm4v.vision_of(config)))


def tensors(config: Config) -> tuple[Tensor, ...]:
    return (*glm4v.visual(glm4v.vision_of(config)), *language_model(GLM4_MOE, text_of(config)))
