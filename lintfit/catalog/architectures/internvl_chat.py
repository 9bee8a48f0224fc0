"""InternVL 1.5 to 3.5 by the code in their repositories: InternViT with one qkv, and a whole language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _projectors as projectors
from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import Encoder, Multimodal, Parts, Text
from lintfit.catalog.architectures._towers import Layer, convolution, layers, patches_of, square, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

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


def _vision(config: Config) -> Encoder:
    given = {key: square(value) for key, value in config.section("vision_config").items()}
    return Encoder(Config(given, VISION, f"{config.origin}: vision_config"), tower_of, _intern)


def _intern(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """InternViT."""
    width, copies, layer, place = tower.hidden, tower.layers, f"{name}.encoder.layers.{{}}", f"{name}.embeddings"
    rms = vision.text("norm_type") == "rms_norm"
    style = Layer(norms=("norm1", "norm2"), rms=rms, attention="attn", inputs=("qkv",), out="proj")
    normed = width * vision.flag("qk_normalization")
    return [
        Tensor(f"{place}.class_embedding", (1, 1, width), 1, "other"),
        *convolution(f"{place}.patch_embedding", (width, 3, tower.patch, tower.patch)),
        Tensor(f"{place}.position_embedding", (1, patches_of(tower) + 1, width), 1, "embedding"),
        *(Tensor(f"{layer}.ls{which}", (width,), copies, "other") for which in (1, 2)),
        *layers(tower, layer, style, qkv_bias=vision.flag("qkv_bias"), normed=normed),
    ]


def _seen(parts: Parts) -> VisionTower:
    """The encoder's numbers, at the size that the images are made."""
    config = parts.config
    size = config.count("force_image_size") or parts.tower.image_size or 0
    tokens = (size // parts.tower.patch) ** 2 // projectors.ratio(config)
    tiles = config.count("max_dynamic_patch", default=1) + config.flag("use_thumbnail")
    return replace(parts.tower, image_size=size, tokens=tokens, tiles=tiles)


def _projector(parts: Parts) -> list[Tensor]:
    merged = parts.tower.hidden * projectors.ratio(parts.config)
    return [
        *norm("mlp1.0", merged, bias=True),
        *linear("mlp1.1", parts.hidden, merged, bias=True),
        *linear("mlp1.3", parts.hidden, parts.hidden, bias=True),
    ]


ROW = Multimodal(
    __doc__,
    text=Text("", free=True, tied=None, key="llm_config"),
    vision=_vision,
    encoders=("vision_model",),
    prefix="language_model.",
    whole=True,
    declared=False,
    own={"downsample_ratio": 0.5, "max_dynamic_patch": 12, "use_thumbnail": True, "tie_word_embeddings": False},
    required=("llm_config", "vision_config"),
    seen=_seen,
    beside=_projector,
)
