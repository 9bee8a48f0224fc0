"""LLaVA 1.5 and other models of its class: an image encoder, a two-layer projector, and any language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog import architectures
from lintfit.catalog.architectures._architecture import Architecture
from lintfit.catalog.architectures._blocks import Shape, linear
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.architectures._towers import Encoder, encoder
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.errors import shown
from lintfit.frozen import replace

REQUIRED = ("text_config",)
TIED = "tie_word_embeddings"
VISION: Mapping[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}
"""transformers ``LlavaConfig``: a model without ``vision_config`` has CLIP ViT-L/14 at 336 pixels."""
DEFAULTS = defaults("llava", vision_config={"model_type": "clip_vision_model", **VISION})
CODE = Code(liger=True)


def text_of(config: Config, default: str = "llama") -> tuple[Architecture, Config]:
    """The language model's model and config; ``default``: its ``model_type`` where none is stated."""
    model_type = str(config.section("text_config").get("model_type") or default)
    model = architectures.find(model_type)
    if model is None or model.language is not None:
        raise config.error("text_config", f"model_type {shown(model_type)} must be a language model that lintfit knows")
    tied = config.flag("tie_word_embeddings")
    return model, part(config, "text_config", model.defaults, tie_word_embeddings=tied)


def tied_as_the_text(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config that says nothing of tied embeddings, with what its language model's part says.

    ``LlavaOnevisionConfig`` does so itself. ``InternVLConfig`` and ``Mistral3Config`` tie there whatever the part says,
    but loading ties nothing that a checkpoint holds twice with different values (``PreTrainedModel.tie_weights``), as
    those of InternVL 3 and of Mistral Small 3.1 do.
    """
    text = given.get("text_config")
    tied = isinstance(text, Mapping) and text.get(TIED) is True and not given.get(TIED)
    return {**given, TIED: True} if tied else given


def language(config: Config) -> tuple[str, Config]:
    model, text = text_of(config)
    return model.name, text


def vision_of(config: Config) -> Encoder:
    """The image encoder."""
    return encoder(config, "clip_vision_model")


def shape(config: Config) -> Shape:
    model, text = text_of(config)
    found = vision_of(config)
    vision = found.numbers
    side = (vision.image_size or 0) // vision.patch
    sized = {"merge": 1} if found.config.get("model_type") == "pixtral" else {"tokens": side * side}
    numbers: Shape = model.shape(text)
    return replace(numbers, vision=replace(vision, **sized))


def projector(name: str, hidden: int, width: int, *, bias: bool) -> list[Tensor]:
    """Two linear layers from the encoder's width to the language model's."""
    return [
        *linear(f"{name}.linear_1", hidden, width, bias=bias, where="vision"),
        *linear(f"{name}.linear_2", hidden, hidden, bias=bias, where="vision"),
    ]


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = text_of(config)
    vision = vision_of(config)
    bias = config.flag("multimodal_projector_bias")
    hidden, width = model.shape(text).hidden, vision.numbers.hidden * feature_layers(config)
    return (
        *vision.tensors("model.vision_tower"),
        *projector("model.multi_modal_projector", hidden, width, bias=bias),
        *language_model(model, text),
    )


def feature_layers(config: Config) -> int:
    """How many of the encoder's layers the projector takes side by side."""
    layers = config.get("vision_feature_layer")
    if layers is None or is_layer(layers):
        return 1
    if not isinstance(layers, list) or not all(is_layer(one) for one in layers):
        raise config.error("vision_feature_layer", "must be the number of a layer, or a list of such numbers")
    return len(layers) or 1


def is_layer(value: object) -> bool:
    """Whether a value is the number of a layer, which may be counted from the end."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST["layers"]
