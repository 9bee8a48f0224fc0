"""Florence-2: DaViT's stages of windows and of channels, a projector with positions, and BART."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import Multimodal, Parts, Text
from lintfit.catalog.architectures._towers import Own, convolution
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower

SIDE, STRIDE = 768, 32
"""Pixels of an image's side as the processor makes it, and those that become one patch by the last stage."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Microsoft's own config has other names for two of the encoder's keys (``configuration_florence2.py``)."""
    vision = given.get("vision_config")
    if not isinstance(vision, Mapping):
        return given
    values = dict(vision)
    if "dim_embed" in values:
        values["embed_dim"] = values["dim_embed"]
    positions = values.get("image_pos_embed")
    if isinstance(positions, Mapping) and "max_pos_embeddings" in positions:
        values["max_position_embeddings"] = positions["max_pos_embeddings"]
    return {**given, "vision_config": values}


def _read(vision: Config) -> VisionTower:
    widths, heads, depths = (_stages(vision, key) for key in ("embed_dim", "num_heads", "depths"))
    return VisionTower(
        hidden=widths[-1],
        layers=2 * sum(depths),
        heads=heads[-1],
        intermediate=int(widths[-1] * (vision.number("mlp_ratio") or 0)),
        patch=STRIDE,
        image_size=SIDE,
        tokens=(SIDE // STRIDE) ** 2 + 1,
    )


def _stages(vision: Config, key: str) -> tuple[int, ...]:
    """A number of every stage."""
    found, expected = vision.numbers(key), len(vision.numbers("embed_dim"))
    if not found or len(found) != expected or min(found) < 1:
        raise vision.error(key, "must be a list of numbers of at least 1, one for every stage")
    return found


def _encoder(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """Stages, each of which begins with a convolution and has blocks of windows and of channels by turns."""
    widths, sides, depths = (_stages(vision, key) for key in ("embed_dim", "patch_size", "depths"))
    first, ratio = vision.get("patch_prenorm"), vision.number("mlp_ratio") or 0
    before, found = vision.size("in_channels"), list[Tensor]()
    for stage, (width, side, depth) in enumerate(zip(widths, sides, depths, strict=True)):
        place = f"{name}.convs.{stage}"
        prenorm = isinstance(first, list | tuple) and stage < len(first) and bool(first[stage])
        found += [
            *convolution(f"{place}.conv", (width, before, side, side)),
            *norm(f"{place}.norm", before if prenorm else width, bias=True),
        ]
        for kind, attention in (("spatial_block", "window_attn"), ("channel_block", "channel_attn")):
            block = f"{name}.blocks.{stage}.{{}}.{kind}"
            found += _block(block, attention, width, int(width * ratio), depth, vision)
        before = width
    return found


def _block(name: str, attention: str, width: int, inner: int, copies: int, vision: Config) -> list[Tensor]:
    found: list[Tensor] = []
    for number in (1, 2):
        found += convolution(f"{name}.conv{number}", (width, 1, 3, 3), copies)
        found += norm(f"{name}.norm{number}", width, copies, bias=True)
    return [
        *found,
        *linear(f"{name}.{attention}.qkv", 3 * width, width, copies, bias=vision.flag("qkv_bias")),
        *linear(f"{name}.{attention}.proj", width, width, copies, bias=True),
        *plain_mlp(f"{name}.ffn", width, inner, copies, up="fc1", down="fc2"),
    ]


def _projector(parts: Parts) -> list[Tensor]:
    vision, name = parts.vision, "model.multi_modal_projector"
    width, out = parts.tower.hidden, vision.size("projection_dim")
    positions = vision.size("max_position_embeddings")
    return [
        *linear(f"{name}.image_projection", out, width),
        *norm(f"{name}.image_proj_norm", out, bias=True),
        Tensor(f"{name}.image_position_embed.row_embeddings.weight", (positions, width // 2), 1, "embedding"),
        Tensor(
            f"{name}.image_position_embed.column_embeddings.weight", (positions, width - width // 2), 1, "embedding"
        ),
    ]


ROW = Multimodal(
    __doc__,
    text=Text("bart"),
    vision=Own(defaults("florence2.vision_config"), _encoder, _read),
    beside=_projector,
    normalised=normalised,
)
