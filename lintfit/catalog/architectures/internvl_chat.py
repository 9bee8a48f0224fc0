"""InternVL 1.5 to 3.5 by the code in their repositories: InternViT with one qkv, and a whole language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog import architectures
from lintfit.catalog.architectures._architecture import Architecture
from lintfit.catalog.architectures._blocks import Shape, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import language_model, tower_of
from lintfit.catalog.architectures._towers import square
from lintfit.catalog.architectures.internvl import shuffled
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.errors import shown
from lintfit.frozen import replace

REQUIRED = ("llm_config", "vision_config")
DEFAULTS: Mapping[str, Any] = {
    "downsample_ratio": 0.5,
    "max_dynamic_patch": 12,
    "use_thumbnail": True,
    "tie_word_embeddings": False,
}
VISION: Mapping[str, Any] = {
    "hidden_size": 3200,
    "intermediate_size": 12800,
    "num_hidden_layers": 48,
    "num_attention_heads": 25,
    "num_channels": 3,
    "image_size": 224,
    "patch_size": 14,
    "hidden_act": "gelu",
    "qkv_bias": False,
    "qk_normalization": True,
    "norm_type": "rms_norm",
}
"""``InternVisionConfig`` of OpenGVLab/InternVL."""


def text_of(config: Config) -> tuple[str, Architecture, Config]:
    """The language model: its ``model_type``, model and config."""
    given = config.section("llm_config")
    model_type = str(given.get("model_type") or "")
    model = architectures.find(model_type)
    if model is None or model.language is not None:
        raise config.error("llm_config", f"model_type {shown(model_type)} must be a language model that lintfit knows")
    return model_type, model, Config(given, model.defaults, f"{config.origin}: llm_config")


def language(config: Config) -> tuple[str, Config]:
    model_type, _, text = text_of(config)
    return model_type, text


def vision_of(config: Config) -> Config:
    """The encoder's config, at the size that the images are made."""
    given = {key: square(value) for key, value in config.section("vision_config").items()}
    return Config(given, VISION, f"{config.origin}: vision_config")


def shape(config: Config) -> Shape:
    _, model, text = text_of(config)
    vision = tower_of(vision_of(config))
    size = config.count("force_image_size") or vision.image_size or 0
    tokens = (size // vision.patch) ** 2 // shuffled(config)
    tiles = config.count("max_dynamic_patch", default=1) + config.flag("use_thumbnail")
    numbers: Shape = model.shape(text)
    return replace(numbers, vision=replace(vision, image_size=size, tokens=tokens, tiles=tiles))


def encoder(vision: Config, name: str) -> list[Tensor]:
    """InternViT."""
    tower = tower_of(vision)
    width, layers, layer, place = tower.hidden, tower.layers, f"{name}.encoder.layers.{{}}", f"{name}.embeddings"
    patches, plain_norm = ((tower.image_size or 0) // tower.patch) ** 2, vision.text("norm_type") != "rms_norm"
    found = [
        Tensor(f"{place}.class_embedding", (1, 1, width), 1, "other"),
        Tensor(f"{place}.patch_embedding.weight", (width, 3, tower.patch, tower.patch), 1, "conv"),
        Tensor(f"{place}.patch_embedding.bias", (width,), 1, "bias"),
        Tensor(f"{place}.position_embedding", (1, patches + 1, width), 1, "embedding"),
        *(Tensor(f"{layer}.ls{which}", (width,), layers, "other") for which in (1, 2)),
        *norm(f"{layer}.norm1", width, layers, bias=plain_norm),
        *norm(f"{layer}.norm2", width, layers, bias=plain_norm),
        *linear(f"{layer}.attn.qkv", 3 * width, width, layers, bias=vision.flag("qkv_bias")),
        *linear(f"{layer}.attn.proj", width, width, layers, bias=True),
        *plain_mlp(f"{layer}.mlp", width, tower.intermediate, layers, up="fc1", down="fc2"),
    ]
    if vision.flag("qk_normalization"):
        found += [*norm(f"{layer}.attn.q_norm", width, layers), *norm(f"{layer}.attn.k_norm", width, layers)]
    return [replace(tensor, where="vision") for tensor in found]


def tensors(config: Config) -> tuple[Tensor, ...]:
    _, model, text = text_of(config)
    vision, hidden = vision_of(config), model.shape(text).hidden
    merged = vision.size("hidden_size", kind="hidden") * shuffled(config)
    whole = language_model(model, text, prefix="language_model.model.")
    return (
        *encoder(vision, "vision_model"),
        *norm("mlp1.0", merged, bias=True, where="vision"),
        *linear("mlp1.1", hidden, merged, bias=True, where="vision"),
        *linear("mlp1.3", hidden, hidden, bias=True, where="vision"),
        *(
            tensor
            if tensor.name.startswith("language_model.")
            else replace(tensor, name=f"language_model.{tensor.name}")
            for tensor in whole
        ),
    )
