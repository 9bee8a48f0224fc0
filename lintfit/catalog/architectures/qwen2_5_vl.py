"""Qwen 2.5 VL: RMSNorm and a gated MLP in the image encoder, attention in windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known, qwen2_vl
from lintfit.catalog.architectures._blocks import Shape, gated_mlp, linear, norm
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, VisionTower
from lintfit.frozen import replace

QWEN2 = known("qwen2")

REQUIRED = qwen2_vl.REQUIRED
DEFAULTS = defaults("qwen2_5_vl")
CODE = Code(liger=True)
VISION = defaults("qwen2_5_vl.vision_config")


def normalised(values: Mapping[str, Any]) -> dict[str, Any]:
    return qwen2_vl.normalised(values)


def tower_of(vision: Config) -> VisionTower:
    """The encoder's numbers."""
    hidden, intermediate = (vision.size(f"{kind}_size", kind=kind) for kind in ("hidden", "intermediate"))
    tower = qwen2_vl.tower(vision, hidden, intermediate)
    if vision.count("window_size", default=tower.patch) < tower.patch:
        raise vision.error("window_size", f"must be no less than a patch ({tower.patch})")
    return tower


def shape(config: Config) -> Shape:
    tower = tower_of(part(config, "vision_config", VISION))
    return replace(QWEN2.shape(qwen2_vl.text_of(config)), vision=tower)


def tensors(config: Config) -> tuple[Tensor, ...]:
    text, vision = qwen2_vl.text_of(config), part(config, "vision_config", VISION)
    tower = shape(config).vision
    assert tower is not None
    width, depth, block = tower.hidden, tower.layers, "model.visual.blocks.{}"
    blocks = [
        *norm(f"{block}.norm1", width, depth),
        *norm(f"{block}.norm2", width, depth),
        *linear(f"{block}.attn.qkv", 3 * width, width, depth, bias=True),
        *linear(f"{block}.attn.proj", width, width, depth, bias=True),
        *gated_mlp(f"{block}.mlp", width, tower.intermediate, depth, bias=True),
    ]
    return (
        *qwen2_vl.patch_projection(vision, width),
        *(replace(tensor, where="vision") for tensor in blocks),
        *qwen2_vl.merger(vision, width, vision.size("out_hidden_size", kind="hidden"), norm_bias=False),
        *language_model(QWEN2, text),
    )
