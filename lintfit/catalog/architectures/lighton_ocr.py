"""LightOn OCR: Pixtral's encoder, Mistral 3's merger of patches and projector, and Qwen 3."""

from __future__ import annotations

from lintfit.catalog.architectures import llava, mistral3
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._multimodal import language_model
from lintfit.catalog.architectures._towers import encoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = ()
DEFAULTS = defaults(
    "lighton_ocr",
    vision_config=mistral3.DEFAULTS["vision_config"],
    text_config={
        "model_type": "qwen3",
        "head_dim": 128,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "max_position_embeddings": 40960,
        "num_attention_heads": 16,
        "num_hidden_layers": 28,
        "num_key_value_heads": 8,
        "vocab_size": 151936,
    },
)


def language(config: Config) -> tuple[str, Config]:
    model, text = llava.text_of(config, "qwen3")
    return model.name, text


def shape(config: Config) -> Shape:
    return mistral3.shape_with(config, "qwen3")


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config, "qwen3")
    vision, hidden, name = encoder(config, "pixtral"), model.shape(text).hidden, "model.vision_projection"
    width, merged = vision.numbers.hidden, config.size("spatial_merge_size") ** 2
    return (
        *vision.tensors("model.vision_encoder"),
        *norm(f"{name}.norm", width, where="vision"),
        *linear(f"{name}.patch_merger.merging_layer", width, width * merged, where="vision"),
        *llava.projector(name, hidden, width, bias=False),
        *language_model(model, text),
    )
