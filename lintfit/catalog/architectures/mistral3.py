"""Mistral Small 3.1 and later: Pixtral's encoder, a merger of patches, a two-layer projector, and Mistral."""

from __future__ import annotations

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._multimodal import language_model
from lintfit.catalog.architectures._towers import encoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("text_config",)
DEFAULTS = defaults(
    "mistral3",
    vision_config={
        "model_type": "pixtral",
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "patch_size": 14,
        "image_size": 1540,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
    },
    tie_word_embeddings=False,
)
normalised = llava.tied_as_the_text


def language(config: Config) -> tuple[str, Config]:
    model, text = llava.text_of(config, "mistral")
    return model.name, text


def shape(config: Config) -> Shape:
    return shape_with(config, "mistral")


def shape_with(config: Config, language: str) -> Shape:
    """The shape of a model whose language model is of this type where its config does not say."""
    model, text = llava.text_of(config, language)
    numbers: Shape = model.shape(text)
    vision = replace(encoder(config, "pixtral").numbers, merge=config.size("spatial_merge_size") ** 2)
    return replace(numbers, vision=vision)


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config, "mistral")
    vision, hidden, name = encoder(config, "pixtral"), model.shape(text).hidden, "model.multi_modal_projector"
    width, merged = vision.numbers.hidden, config.size("spatial_merge_size") ** 2
    return (
        *vision.tensors("model.vision_tower"),
        *norm(f"{name}.norm", width, where="vision"),
        *linear(f"{name}.patch_merger.merging_layer", width, width * merged, where="vision"),
        *llava.projector(
            name, hidden, width * llava.feature_layers(config), bias=config.flag("multimodal_projector_bias")
        ),
        *language_model(model, text),
    )
