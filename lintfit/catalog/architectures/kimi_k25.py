"""Kimi K2.5 and K2.6: Kimi K2, which is DeepSeek V3's architecture, behind MoonViT."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import Multimodal, Parts, Text
from lintfit.catalog.architectures._towers import Layer, Own, convolution, layers, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

LAYER = Layer(norms=("norm1", "norm2"), attention="attn", out="proj")
MOST_PATCHES = 16_384
"""Patches of the largest image that the processor leaves (``max_patches`` of ``image_processing_kimi_k25.py``)."""


def _read(vision: Config) -> VisionTower:
    sides = vision.numbers("merge_kernel_size")
    if len(sides) != 2 or min(sides) < 1:
        raise vision.error("merge_kernel_size", "must be two whole numbers")
    return replace(tower_of(vision, sized=False), merge=sides[0] * sides[1], most=MOST_PATCHES)


def _moonvit(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    width, place = tower.hidden, f"{name}.patch_embed"
    grid = (vision.size("pos_emb_height"), vision.size("pos_emb_width"), width)
    return [
        *convolution(f"{place}.proj", (width, 3, tower.patch, tower.patch)),
        Tensor(f"{place}.pos_emb.position_embeddings", grid, 1, "other"),
        *layers(tower, f"{name}.layers.{{}}", LAYER),
        *norm(f"{name}.final_layernorm", width, bias=True),
    ]


def _projector(parts: Parts) -> list[Tensor]:
    merged, name = parts.tower.hidden * parts.tower.merge, "model.mm_projector"
    return [
        *norm(f"{name}.pre_norm", parts.config.size("projection_hidden_size", kind="hidden"), bias=True),
        *linear(f"{name}.in_proj", merged, merged, bias=True),
        *linear(f"{name}.out_proj", parts.hidden, merged, bias=True),
    ]


ROW = Multimodal(
    __doc__,
    text=Text("deepseek_v3"),
    vision=Own(defaults("kimi_k25.vision_config"), _moonvit, _read),
    beside=_projector,
    notes=known("deepseek_v3").notes,
)
