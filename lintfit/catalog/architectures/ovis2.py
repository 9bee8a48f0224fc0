"""Ovis 2: AIMv2 whose patches become a share of each word of a visual vocabulary, and Qwen 2.5."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import Multimodal, Parts, Text
from lintfit.catalog.architectures._towers import Layer, Own, layers, patches, patches_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

VISION = defaults("ovis2.vision_config")
LAYER = Layer(norms=("rms_norm1", "rms_norm2"), rms=True, attention="attention", mlp="ffn", gated=True)
MOST_TILES = 12 + 1
"""``max_patches`` of the processor, and the whole image beside them (``Ovis2ImageProcessor``)."""


def _seen(parts: Parts) -> VisionTower:
    tower = parts.tower
    side = -(-((tower.image_size or 0) // tower.patch) // parts.vision.size("hidden_stride"))
    return replace(tower, tokens=side * side, tiles=MOST_TILES)


def _words(vision: Config) -> tuple[int, int]:
    """Words of the visual vocabulary, and those of them that patches may become."""
    every, marks = vision.size("vocab_size", kind="vocab"), vision.size("num_visual_indicator_tokens")
    if every <= marks:
        raise vision.error("vocab_size", f"must be more than the {marks} indicator tokens")
    return every, every - marks


def _encoder(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    width, (_, own), bias = tower.hidden, _words(vision), vision.flag("qkv_bias")
    place, layer = f"{name}.transformer.embeddings", f"{name}.transformer.encoder.layers.{{}}"
    return [
        *patches(f"{place}.patch_embedding", vision),
        Tensor(f"{place}.position_embedding.weight", (patches_of(tower), width), 1, "embedding"),
        *norm(f"{place}.rms_norm", width),
        *layers(tower, layer, LAYER, qkv_bias=bias, out_bias=bias, mlp_bias=vision.flag("mlp_bias")),
        *norm(f"{name}.transformer.rms_norm", width),
        *linear(f"{name}.head_linear", own, width * vision.size("hidden_stride") ** 2),
        *norm(f"{name}.head_norm", own, bias=True),
    ]


def _table(parts: Parts) -> list[Tensor]:
    every, _ = _words(parts.vision)
    return [Tensor("model.visual_embeddings_table.weight", (every, parts.hidden), 1, "embedding", "vision")]


ROW = Multimodal(__doc__, text=Text("qwen2", free=True), vision=Own(VISION, _encoder), seen=_seen, beside=_table)
