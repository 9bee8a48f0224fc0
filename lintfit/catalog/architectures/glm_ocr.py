"""GLM OCR: GLM 4.1V's layers without biases in the text, and norms of heads in the image encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import glm4v, known, qwen2_vl
from lintfit.catalog.architectures._blocks import Shape, gated_mlp, linear, norm
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

GLM4 = known("glm4")

REQUIRED = glm4v.REQUIRED
DEFAULTS = defaults("glm_ocr")
TEXT: Mapping[str, Any] = {
    **glm4v.TEXT,
    "vocab_size": 59392,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
}
VISION = defaults("glm_ocr.vision_config")
NOTES = ("no multi-token-prediction layers (transformers does not load those of a checkpoint)",)


def text_of(config: Config) -> Config:
    """The language model's part. An old config says in there alone that the head is tied."""
    tied = config.flag("tie_word_embeddings") or bool(config.section("text_config").get("tie_word_embeddings"))
    return part(config, "text_config", TEXT, tie_word_embeddings=tied, attention_bias=False)


def vision_of(config: Config) -> Config:
    return part(config, "vision_config", VISION)


def language(config: Config) -> tuple[str, Config]:
    return "glm_ocr_text", text_of(config)


def tower_of(vision: Config) -> VisionTower:
    """The encoder's numbers; its MLPs have a width of their own."""
    return replace(glm4v.tower_of(vision), intermediate=vision.size("intermediate_size", kind="intermediate"))


def shape(config: Config) -> Shape:
    return replace(GLM4.shape(text_of(config)), vision=tower_of(vision_of(config)))


def visual(vision: Config) -> list[Tensor]:
    """The whole image encoder. Its merger is three times as wide inside as what it gives."""
    tower, bias = tower_of(vision), vision.flag("attention_bias")
    width, depth, block = tower.hidden, tower.layers, "model.visual.blocks.{}"
    out, merge = vision.size("out_hidden_size", kind="hidden"), vision.size("spatial_merge_size")
    merger, head = "model.visual.merger", width // tower.heads
    found = [
        *qwen2_vl.patch_projection(vision, width, bias=True),
        *norm(f"{block}.norm1", width, depth),
        *norm(f"{block}.norm2", width, depth),
        *linear(f"{block}.attn.qkv", 3 * width, width, depth, bias=bias),
        *linear(f"{block}.attn.proj", width, width, depth, bias=bias),
        *norm(f"{block}.attn.q_norm", head, depth),
        *norm(f"{block}.attn.k_norm", head, depth),
        *gated_mlp(f"{block}.mlp", width, tower.intermediate, depth, bias=bias),
        *norm("model.visual.post_layernorm", width),
        Tensor("model.visual.downsample.weight", (out, width, merge, merge), 1, "conv"),
        Tensor("model.visual.downsample.bias", (out,), 1, "bias"),
        *linear(f"{merger}.proj", out, out),
        *norm(f"{merger}.post_projection_norm", out, bias=True),
        *gated_mlp(merger, out, out * vision.size("in_channels", "in_chans"), 1),
    ]
    return [replace(tensor, where="vision") for tensor in found]


def tensors(config: Config) -> tuple[Tensor, ...]:
    return (*visual(vision_of(config)), *language_model(GLM4, text_of(config)))
