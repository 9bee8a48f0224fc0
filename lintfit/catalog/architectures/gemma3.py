"""Gemma 3 with its SigLIP tower (4b, 12b, 27b)."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, norm
from lintfit.catalog.architectures._multimodal import SIGLIP, language_model, part, siglip, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

GEMMA3_TEXT = known("gemma3_text")

REQUIRED = ("text_config",)
DEFAULTS = defaults("gemma3")
CODE = Code(eager_advised=True, liger=True)


def text_of(config: Config) -> Config:
    return part(config, "text_config", GEMMA3_TEXT.defaults, tie_word_embeddings=config.flag("tie_word_embeddings"))


def language(config: Config) -> tuple[str, Config]:
    return "gemma3_text", text_of(config)


def shape(config: Config) -> Shape:
    vision = tower_of(part(config, "vision_config", SIGLIP), tokens=config.size("mm_tokens_per_image"))
    return replace(GEMMA3_TEXT.shape(text_of(config)), vision=vision)


def tensors(config: Config) -> tuple[Tensor, ...]:
    text, vision = text_of(config), part(config, "vision_config", SIGLIP)
    hidden, width = GEMMA3_TEXT.shape(text).hidden, vision.size("hidden_size", kind="hidden")
    projector = "model.multi_modal_projector"
    return (
        *siglip(vision, "model.vision_tower", pooling=vision.flag("vision_use_head", True)),
        Tensor(f"{projector}.mm_input_projection_weight", (width, hidden), 1, "other", "vision"),
        *norm(f"{projector}.mm_soft_emb_norm", width, where="vision"),
        *language_model(GEMMA3_TEXT, text),
    )
