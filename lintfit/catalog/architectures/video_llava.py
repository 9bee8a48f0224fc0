"""Video-LLaVA: an encoder for images and one of the same shape for frames, LLaVA's projector, and a language model."""

from __future__ import annotations

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._multimodal import language_model
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = ("text_config",)
DEFAULTS = defaults("video_llava", vision_config={"model_type": "clip_vision_model", **llava.VISION, "image_size": 224})


def language(config: Config) -> tuple[str, Config]:
    return llava.language(config)


def shape(config: Config) -> Shape:
    return llava.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config)
    vision, bias = llava.vision_of(config), config.flag("multimodal_projector_bias")
    hidden, width = model.shape(text).hidden, vision.numbers.hidden * llava.feature_layers(config)
    return (
        *vision.tensors("model.video_tower"),
        *vision.tensors("model.image_tower"),
        *llava.projector("model.multi_modal_projector", hidden, width, bias=bias),
        *language_model(model, text),
    )
