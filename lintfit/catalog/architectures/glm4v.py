"""GLM 4.1V and 4.6V Flash: GLM-4 behind an image encoder whose patches are merged by a convolution."""

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

GLM4 = known("glm4")

REQUIRED = ("text_config",)
DEFAULTS = defaults("glm4v")
CODE = Code(liger=True)
TEXT: Mapping[str, Any] = {
    **{key: value for key, value in GLM4.defaults.items() if key != "head_dim"},
    "max_position_embeddings": 32768,
    "partial_rotary_factor": 1.0,
}
VISION = defaults("glm4v.vision_config")
MOST_PATCHES = 30_000
"""Patches of the largest image that the processor leaves: ``longest_edge`` is 28 * 28 * 15000 pixels of two frames, and
an image counts as two (``image_processing_glm4v.py:smart_resize``)."""


def text_of(config: Config) -> Config:
    """The language model's part. Queries, keys and values have biases, heads no width of their own, whatever it says.

    An old config says in there alone that the head is tied.
    """
    tied = config.flag("tie_word_embeddings") or bool(config.section("text_config").get("tie_word_embeddings"))
    return part(config, "text_config", TEXT, tie_word_embeddings=tied, attention_bias=True, head_dim=None)


def vision_of(config: Config) -> Config:
    return part(config, "vision_config", VISION)


def language(config: Config) -> tuple[str, Config]:
    return "glm4v_text", text_of(config)


def tower_of(vision: Config) -> VisionTower:
    """The encoder's numbers; its MLPs are as wide as what it gives."""
    hidden, out = (vision.size(key, kind="hidden") for key in ("hidden_size", "out_hidden_size"))
    tower, merge = qwen2_vl.tower(vision, hidden, out), vision.size("spatial_merge_size") ** 2
    return replace(tower, merge=merge, most=MOST_PATCHES)


def shape(config: Config) -> Shape:
    return replace(GLM4.shape(text_of(config)), vision=tower_of(vision_of(config)))


def visual(vision: Config) -> list[Tensor]:
    """The whole image encoder."""
    tower = tower_of(vision)
    width, depth, out, block = tower.hidden, tower.layers, tower.intermediate, "model.visual.blocks.{}"
    side, merge = vision.size("image_size") // tower.patch, vision.size("spatial_merge_size")
    merger, inner = "model.visual.merger", vision.size("intermediate_size", kind="intermediate")
    found = [
        *qwen2_vl.patch_projection(vision, width, bias=True),
        Tensor("model.visual.embeddings.position_embedding.weight", (side * side, width), 1, "embedding"),
        *norm("model.visual.post_conv_layernorm", width),
        *norm(f"{block}.norm1", width, depth),
        *norm(f"{block}.norm2", width, depth),
        *linear(f"{block}.attn.qkv", 3 * width, width, depth, bias=vision.flag("attention_bias")),
        *linear(f"{block}.attn.proj", width, width, depth),
        *gated_mlp(f"{block}.mlp", width, out, depth),
        *norm("model.visual.post_layernorm", width),
        Tensor("model.visual.downsample.weight", (out, width, merge, merge), 1, "conv"),
        Tensor("model.visual.downsample.bias", (out,), 1, "bias"),
        *linear(f"{merger}.proj", out, out),
        *norm(f"{merger}.post_projection_norm", out, bias=True),
        *gated_mlp(merger, out, inner, 1),
    ]
    return [replace(tensor, where="vision") for tensor in found]


def tensors(config: Config) -> tuple[Tensor, ...]:
    return (*visual(vision_of(config)), *language_model(GLM4, text_of(config)))
