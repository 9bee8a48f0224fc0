"""Qwen 2 VL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, VisionTower
from lintfit.frozen import replace

QWEN2 = known("qwen2")

REQUIRED = ("text_config",)
DEFAULTS = defaults("qwen2_vl")
CODE = Code(liger=True)
TEXT = defaults("qwen2_vl.text_config")
VISION = defaults("qwen2_vl.vision_config")


def normalised(values: Mapping[str, Any]) -> dict[str, Any]:
    """The published configs have the text model's keys at the top."""
    found = dict(values)
    if "text_config" not in found and "hidden_size" in found:
        found["text_config"] = {key: value for key, value in values.items() if key != "vision_config"}
    return found


def text_of(config: Config) -> Config:
    return part(config, "text_config", TEXT, tie_word_embeddings=config.flag("tie_word_embeddings"))


def shape(config: Config) -> Shape:
    vision = part(config, "vision_config", VISION)
    width = vision.size("embed_dim", kind="hidden")
    return replace(QWEN2.shape(text_of(config)), vision=tower(vision, width, width * vision.size("mlp_ratio")))


def tower(vision: Config, hidden: int, intermediate: int) -> VisionTower:
    """The numbers of an encoder with Qwen's words for its layers and heads."""
    return VisionTower(
        hidden=hidden,
        layers=vision.size("depth", kind="layers"),
        heads=vision.size("num_heads", kind="heads"),
        intermediate=intermediate,
        patch=vision.size("patch_size"),
    )


def patch_projection(vision: Config, width: int, *, bias: bool = False) -> list[Tensor]:
    """The convolution over two frames that turns patches into embeddings."""
    patch, frames = vision.size("patch_size"), vision.size("temporal_patch_size")
    channels = vision.size("in_channels", "in_chans")
    name = "model.visual.patch_embed.proj"
    found = [Tensor(f"{name}.weight", (width, channels, frames, patch, patch), 1, "conv", "vision")]
    return [*found, Tensor(f"{name}.bias", (width,), 1, "bias", "vision")] if bias else found


def merger(vision: Config, width: int, out: int, *, norm_bias: bool) -> list[Tensor]:
    """The MLP that merges neighbouring patches into one token of the language model."""
    merged, name = width * vision.size("spatial_merge_size") ** 2, "model.visual.merger"
    return [
        *norm(f"{name}.ln_q", width, bias=norm_bias, where="vision"),
        *linear(f"{name}.mlp.0", merged, merged, bias=True, where="vision"),
        *linear(f"{name}.mlp.2", out, merged, bias=True, where="vision"),
    ]


def tensors(config: Config) -> tuple[Tensor, ...]:
    text, vision = text_of(config), part(config, "vision_config", VISION)
    tower = shape(config).vision
    assert tower is not None
    width, depth, block = tower.hidden, tower.layers, "model.visual.blocks.{}"
    blocks = [
        *norm(f"{block}.norm1", width, depth, bias=True),
        *norm(f"{block}.norm2", width, depth, bias=True),
        *linear(f"{block}.attn.qkv", 3 * width, width, depth, bias=True),
        *linear(f"{block}.attn.proj", width, width, depth, bias=True),
        *plain_mlp(f"{block}.mlp", width, tower.intermediate, depth, up="fc1", down="fc2"),
    ]
    return (
        *patch_projection(vision, width),
        *(replace(tensor, where="vision") for tensor in blocks),
        *merger(vision, width, vision.size("hidden_size", kind="hidden"), norm_bias=True),
        *language_model(QWEN2, text),
    )
