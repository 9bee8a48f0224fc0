"""LFM 2 VL: SigLIP 2 over squares of an image, four patches to a token, and LFM 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known, lfm2
from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import TIED, Encoder, LanguageModel, Multimodal, Parts, part
from lintfit.catalog.architectures._towers import SIGLIP, Layer, layers, pooling_head, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

OWN: Mapping[str, Any] = {"tile_size": 512, "max_tiles": 10, "use_thumbnail": True}
DEFAULTS = defaults("lfm2_vl", **OWN)
VISION: Mapping[str, Any] = {
    **{key: value for key, value in SIGLIP.items() if key != "image_size"},
    "num_patches": 256,
    "vision_use_head": True,
}


def _text(config: Config) -> LanguageModel:
    """The language model's part, by whichever names it has."""
    model = known("lfm2")
    values = {**lfm2.normalised(config.section("text_config")), TIED: config.flag(TIED)}
    return LanguageModel("lfm2", model, Config(values, model.defaults, f"{config.origin}: text_config"))


def _vision(config: Config) -> Encoder:
    """What the encoder gets of an image are squares of ``tile_size`` pixels."""
    return Encoder(part(config, "vision_config", VISION, image_size=config.size("tile_size")), tower_of, _siglip2)


def _siglip2(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    width, rows = tower.hidden, vision.size("num_patches", kind="positions")
    return [
        *linear(f"{name}.embeddings.patch_embedding", width, vision.size("num_channels") * tower.patch**2, bias=True),
        Tensor(f"{name}.embeddings.position_embedding.weight", (rows, width), 1, "embedding"),
        *layers(tower, f"{name}.encoder.layers.{{}}", Layer()),
        *norm(f"{name}.post_layernorm", width, bias=True),
        *(pooling_head(tower, f"{name}.head") if vision.flag("vision_use_head") else []),
    ]


def _seen(parts: Parts) -> VisionTower:
    tower, config = parts.tower, parts.config
    side = (tower.image_size or 0) // tower.patch // config.size("downsample_factor")
    return replace(tower, tokens=side * side, tiles=config.size("max_tiles") + config.flag("use_thumbnail"))


def _projector(parts: Parts) -> list[Tensor]:
    config, name = parts.config, "model.multi_modal_projector"
    merged, bias = parts.tower.hidden * config.size("downsample_factor") ** 2, config.flag("projector_bias")
    inner = config.size("projector_hidden_size", kind="hidden")
    return [
        *(norm(f"{name}.layer_norm", merged, bias=True) if config.flag("projector_use_layernorm") else []),
        *linear(f"{name}.linear_1", inner, merged, bias=bias),
        *linear(f"{name}.linear_2", parts.hidden, inner, bias=bias),
    ]


ROW = Multimodal(__doc__, text=_text, vision=_vision, own=OWN, seen=_seen, beside=_projector)
