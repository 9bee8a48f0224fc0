"""Ovis 2: AIMv2 whose patches become a share of each word of a visual vocabulary, and Qwen 2.5."""

from __future__ import annotations

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape, gated_mlp, linear, norm
from lintfit.catalog.architectures._multimodal import language_model, part, patches, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("text_config",)
DEFAULTS = defaults("ovis2")
VISION = defaults("ovis2.vision_config")
MOST_TILES = 12 + 1
"""``max_patches`` of the processor, and the whole image beside them (``Ovis2ImageProcessor``)."""


def language(config: Config) -> tuple[str, Config]:
    model, text = llava.text_of(config, "qwen2")
    return model.name, text


def vision_of(config: Config) -> Config:
    return part(config, "vision_config", VISION)


def shape(config: Config) -> Shape:
    model, text = llava.text_of(config, "qwen2")
    vision = vision_of(config)
    tower = tower_of(vision)
    side = -(-((tower.image_size or 0) // tower.patch) // vision.size("hidden_stride"))
    numbers: Shape = model.shape(text)
    return replace(numbers, vision=replace(tower, tokens=side * side, tiles=MOST_TILES))


def words(vision: Config) -> tuple[int, int]:
    """Words of the visual vocabulary, and those of them that patches may become."""
    every, marks = vision.size("vocab_size", kind="vocab"), vision.size("num_visual_indicator_tokens")
    if every <= marks:
        raise vision.error("vocab_size", f"must be more than the {marks} indicator tokens")
    return every, every - marks


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config, "qwen2")
    vision, name = vision_of(config), "model.vision_tower"
    tower, (every, own) = tower_of(vision), words(vision)
    width, depth, side = tower.hidden, tower.layers, (tower.image_size or 0) // tower.patch
    place, layer = f"{name}.transformer.embeddings", f"{name}.transformer.encoder.layers.{{}}"
    merged = width * vision.size("hidden_stride") ** 2
    found = [
        *patches(f"{place}.patch_embedding", vision, bias=True),
        Tensor(f"{place}.position_embedding.weight", (side * side, width), 1, "embedding"),
        *norm(f"{place}.rms_norm", width),
        *norm(f"{layer}.rms_norm1", width, depth),
        *norm(f"{layer}.rms_norm2", width, depth),
        *gated_mlp(f"{layer}.ffn", width, tower.intermediate, depth, bias=vision.flag("mlp_bias")),
        *norm(f"{name}.transformer.rms_norm", width),
        *linear(f"{name}.head_linear", own, merged),
        *norm(f"{name}.head_norm", own, bias=True),
        Tensor("model.visual_embeddings_table.weight", (every, model.shape(text).hidden), 1, "embedding"),
    ]
    for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
        found += linear(f"{layer}.attention.{projection}", width, width, depth, bias=vision.flag("qkv_bias"))
    return (*(replace(tensor, where="vision") for tensor in found), *language_model(model, text))
