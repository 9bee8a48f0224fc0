"""Qwen's encoders of images, and the models that have them: Qwen 2 to 3.6 and EXAONE 4.5."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import Multimodal, Text
from lintfit.catalog.architectures._towers import Layer, Own, convolution, layers, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, VisionTower
from lintfit.frozen import replace

BLOCK = "model.visual.blocks.{}"
FIRST = Layer(norms=("norm1", "norm2"), attention="attn", inputs=("qkv",), out="proj")
"""Qwen 2 VL's layers."""
GATED = replace(FIRST, rms=True, gated=True)
"""Qwen 2.5 VL's."""


def text_inside(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config with the text model's keys in a part; the published ones have them at the top."""
    if "text_config" in values or "hidden_size" not in values:
        return values
    return {**values, "text_config": {key: value for key, value in values.items() if key != "vision_config"}}


numbers = functools.partial(tower_of, layers="depth", heads="num_heads", sized=False)
"""The numbers of an encoder with Qwen's words for its layers and heads."""


def first_numbers(vision: Config) -> VisionTower:
    """Those of Qwen 2 VL's."""
    tower = numbers(vision, hidden="embed_dim", ratio="mlp_ratio")
    return replace(tower, intermediate=tower.hidden * vision.size("mlp_ratio"))


def windowed_numbers(vision: Config) -> VisionTower:
    """Those of Qwen 2.5 VL's, whose attention has windows."""
    tower = numbers(vision)
    if vision.count("window_size", default=tower.patch) < tower.patch:
        raise vision.error("window_size", f"must be no less than a patch ({tower.patch})")
    return tower


def patch_projection(vision: Config, width: int, *, bias: bool = False) -> list[Tensor]:
    """The convolution over two frames that turns patches into embeddings."""
    patch, frames = vision.size("patch_size"), vision.size("temporal_patch_size")
    shape = (width, vision.size("in_channels", "in_chans"), frames, patch, patch)
    return convolution("model.visual.patch_embed.proj", shape, bias=bias)


def out_of(vision: Config) -> int:
    """Width of what the encoder gives, which is the language model's."""
    return vision.size("out_hidden_size", kind="hidden")


def merger(vision: Config, width: int, out: int, *, norm_bias: bool) -> list[Tensor]:
    """The MLP that merges neighbouring patches into one token of the language model."""
    merged, name = width * vision.size("spatial_merge_size") ** 2, "model.visual.merger"
    return [
        *norm(f"{name}.ln_q", width, bias=norm_bias),
        *linear(f"{name}.mlp.0", merged, merged, bias=True),
        *linear(f"{name}.mlp.2", out, merged, bias=True),
    ]


def first(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """Qwen 2 VL's encoder."""
    return [
        *patch_projection(vision, tower.hidden),
        *layers(tower, BLOCK, FIRST),
        *merger(vision, tower.hidden, vision.size("hidden_size", kind="hidden"), norm_bias=True),
    ]


def windowed(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """Qwen 2.5 VL's."""
    return [*layers(tower, BLOCK, GATED), *around_windowed(vision, tower)]


def around_windowed(vision: Config, tower: VisionTower) -> list[Tensor]:
    """What stands before and behind its layers."""
    behind = merger(vision, tower.hidden, out_of(vision), norm_bias=False)
    return [*patch_projection(vision, tower.hidden), *behind]


def grouped(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """EXAONE 4.5's: Qwen 2.5 VL's with keys and values that heads share."""
    keys = vision.size("num_key_value_heads", kind="heads") * (tower.hidden // tower.heads)
    return [*layers(tower, BLOCK, GATED, keys=keys), *around_windowed(vision, tower)]


def deep(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """Qwen 3 VL's: learnt positions, and features of several layers for the language model."""
    width, out = tower.hidden, out_of(vision)
    merged = width * vision.size("spatial_merge_size") ** 2
    positions = (vision.size("num_position_embeddings", kind="positions"), width)
    copies = len(vision.numbers("deepstack_visual_indexes"))
    return [
        *patch_projection(vision, width, bias=True),
        Tensor("model.visual.pos_embed.weight", positions, 1, "embedding"),
        *layers(tower, BLOCK, replace(FIRST, up="linear_fc1", down="linear_fc2")),
        *_deep_merger("model.visual.merger", width, merged, out, 1),
        *_deep_merger("model.visual.deepstack_merger_list.{}", merged, merged, out, copies),
    ]


def _deep_merger(name: str, norm_size: int, merged: int, out: int, copies: int) -> list[Tensor]:
    """The MLP from merged patches to the language model's width."""
    return [
        *norm(f"{name}.norm", norm_size, copies, bias=True),
        *linear(f"{name}.linear_fc1", merged, merged, copies, bias=True),
        *linear(f"{name}.linear_fc2", out, merged, copies, bias=True),
    ]


QWEN3_VL = Multimodal(
    "Qwen 3 VL, dense: learnt positions and features of several encoder layers fed into the language model",
    text=Text("qwen3"),
    vision=Own(defaults("qwen3_vl.vision_config"), deep, numbers),
    code=Code(liger=True),
)
QWEN3_5 = replace(
    QWEN3_VL,
    about="Qwen 3.5 and 3.6, dense: the image encoder of Qwen 3 VL before a language model of gated delta rules",
    text=Text("qwen3_5_text"),
    vision=Own(defaults("qwen3_5.vision_config", deepstack_visual_indexes=[]), deep, numbers),
    notes=known("qwen3_5_text").notes,
    code=Code(liger=True, text_by_auto=True),
)
QWEN2_TEXT = Text("qwen2", defaults=defaults("qwen2_vl.text_config"))

ROWS: Mapping[str, Multimodal] = {
    "exaone4_5": Multimodal(
        "EXAONE 4.5: EXAONE 4 behind Qwen 2.5 VL's image encoder, whose heads share keys and values",
        text=Text("exaone4"),
        vision=Own(defaults("exaone4_5.vision_config"), grouped, windowed_numbers),
        notes=("no multi-token-prediction layers (transformers does not load those of a checkpoint)",),
    ),
    "qwen2_vl": Multimodal(
        "Qwen 2 VL",
        text=QWEN2_TEXT,
        apart=False,
        vision=Own(defaults("qwen2_vl.vision_config"), first, first_numbers),
        normalised=text_inside,
        code=Code(liger=True),
    ),
    "qwen2_5_vl": Multimodal(
        "Qwen 2.5 VL: RMSNorm and a gated MLP in the image encoder, attention in windows",
        text=QWEN2_TEXT,
        apart=False,
        vision=Own(defaults("qwen2_5_vl.vision_config"), windowed, windowed_numbers),
        normalised=text_inside,
        code=Code(liger=True),
    ),
    "qwen3_5": QWEN3_5,
    "qwen3_5_moe": replace(
        QWEN3_5,
        about="Qwen 3.5 and 3.6 with routed experts: 35B-A3B, 122B-A10B, 397B-A17B",
        text=Text("qwen3_5_moe_text"),
        notes=known("qwen3_5_moe_text").notes,
    ),
    "qwen3_vl": QWEN3_VL,
    "qwen3_vl_moe": replace(
        QWEN3_VL, about="Qwen 3 VL with routed experts: 30B-A3B, 235B-A22B", text=Text("qwen3_moe")
    ),
}
