"""ViP-LLaVA: LLaVA whose projector norms and takes several layers of CLIP side by side."""

from __future__ import annotations

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape, norm
from lintfit.catalog.architectures._multimodal import language_model
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = ("text_config",)
DEFAULTS = defaults("vipllava", vision_config={"model_type": "clip_vision_model", **llava.VISION})


def language(config: Config) -> tuple[str, Config]:
    return llava.language(config)


def shape(config: Config) -> Shape:
    return llava.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config)
    vision, projector = llava.vision_of(config), "model.multi_modal_projector"
    hidden, width = model.shape(text).hidden, vision.numbers.hidden * llava.feature_layers(config)
    return (
        *vision.tensors("model.vision_tower"),
        *norm(f"{projector}.projector_layernorm", width, bias=True, where="vision"),
        *llava.projector(projector, hidden, width, bias=True),
        *language_model(model, text),
    )
