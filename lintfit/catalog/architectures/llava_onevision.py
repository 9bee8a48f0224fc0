"""LLaVA-OneVision: SigLIP, LLaVA's projector, a learnt line break between rows, and Qwen 2."""

from __future__ import annotations

from lintfit.catalog.architectures import llava, llava_next
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._multimodal import language_model
from lintfit.catalog.architectures._towers import encoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = llava.REQUIRED
normalised = llava.tied_as_the_text
SIDES = range(384, 2305, 384)
DEFAULTS = defaults(
    "llava_onevision",
    vision_config={
        "model_type": "siglip_vision_model",
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "patch_size": 14,
        "image_size": 384,
        "num_hidden_layers": 26,
        "num_attention_heads": 16,
        "vision_use_head": False,
    },
    image_grid_pinpoints=[[height, width] for height in SIDES for width in SIDES],
)


def language(config: Config) -> tuple[str, Config]:
    model, text = llava.text_of(config, "qwen2")
    return model.name, text


def shape(config: Config) -> Shape:
    model, text = llava.text_of(config, "qwen2")
    vision = encoder(config, "siglip_vision_model").numbers
    size = vision.image_size or vision.patch
    numbers: Shape = model.shape(text)
    tiles = llava_next.most_tiles(config, size)
    return replace(numbers, vision=replace(vision, tokens=(size // vision.patch) ** 2, tiles=tiles))


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config, "qwen2")
    vision, hidden = encoder(config, "siglip_vision_model"), model.shape(text).hidden
    width, bias = vision.numbers.hidden * llava.feature_layers(config), config.flag("multimodal_projector_bias")
    return (
        Tensor("model.image_newline", (hidden,), 1, "other", "vision"),
        *vision.tensors("model.vision_tower"),
        *llava.projector("model.multi_modal_projector", hidden, width, bias=bias),
        *language_model(model, text),
    )
