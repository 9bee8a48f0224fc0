"""DeepSeek VL: SigLIP, a two-layer aligner, and a language model of Llama's kind."""

from __future__ import annotations

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape, linear
from lintfit.catalog.architectures._multimodal import language_model
from lintfit.catalog.architectures._towers import encoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("text_config",)
DEFAULTS = defaults("deepseek_vl", vision_config={"model_type": "siglip_vision_model"})


def language(config: Config) -> tuple[str, Config]:
    return llava.language(config)


def shape(config: Config) -> Shape:
    model, text = llava.text_of(config)
    vision = encoder(config, "siglip_vision_model").numbers
    numbers: Shape = model.shape(text)
    return replace(numbers, vision=replace(vision, tokens=((vision.image_size or 0) // vision.patch) ** 2))


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config)
    vision, hidden = encoder(config, "siglip_vision_model"), model.shape(text).hidden
    return (
        *vision.tensors("model.vision_model"),
        *linear("model.aligner.linear1", hidden, vision.numbers.hidden, bias=True, where="vision"),
        *linear("model.aligner.linear2", hidden, hidden, bias=True, where="vision"),
        *language_model(model, text),
    )
