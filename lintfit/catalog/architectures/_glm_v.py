"""GLM 4.1V, 4.5V, 4.6V and OCR: GLM 4 behind an image encoder whose patches are merged by a convolution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import gated_mlp, linear, norm
from lintfit.catalog.architectures._multimodal import LanguageModel, Multimodal, Text, tied_anywhere, tied_at_the_top
from lintfit.catalog.architectures._qwen_vl import BLOCK, GATED, numbers, out_of, patch_projection
from lintfit.catalog.architectures._towers import Own, convolution, layers
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, VisionTower
from lintfit.frozen import replace

TEXT: Mapping[str, Any] = {
    **{key: value for key, value in known("glm4").defaults.items() if key != "head_dim"},
    "max_position_embeddings": 32768,
    "partial_rotary_factor": 1.0,
}
OCR_TEXT: Mapping[str, Any] = {
    **TEXT,
    "vocab_size": 59392,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
}
VISION = defaults("glm4v.vision_config")
MOST_PATCHES = 30_000
"""Patches of the largest image that the processor leaves: ``longest_edge`` is 28 * 28 * 15000 pixels of two frames, and
an image counts as two (``image_processing_glm4v.py:smart_resize``)."""
DENSE = Text(
    "glm4",
    name="glm4v_text",
    defaults=TEXT,
    # Queries, keys and values have biases, heads no width of their own.
    fixed={"attention_bias": True, "head_dim": None},
    tied=tied_anywhere,
)
MIXED = Text(
    "glm4_moe",
    name="glm4v_moe_text",
    defaults=defaults("glm4v_moe.text_config", use_qk_norm=False),  # no key of this class
    fixed={"use_qk_norm": False},
    tied=tied_anywhere,
)


def either(config: Config) -> LanguageModel:
    """The language model that a config names; that without experts where it names none."""
    mixed = config.section("text_config").get("model_type") == MIXED.name
    return replace(MIXED if mixed else DENSE, tied=tied_at_the_top)(config)


def read(vision: Config) -> VisionTower:
    """The encoder's numbers; its MLPs are as wide as what it gives."""
    tower = numbers(vision, intermediate="out_hidden_size")
    return replace(tower, merge=vision.size("spatial_merge_size") ** 2, most=MOST_PATCHES)


def read_ocr(vision: Config) -> VisionTower:
    """Those of GLM OCR's, whose MLPs have a width of their own."""
    return replace(read(vision), intermediate=vision.size("intermediate_size", kind="intermediate"))


def visual(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """GLM 4.1V's encoder."""
    bias, side = vision.flag("attention_bias"), vision.size("image_size") // tower.patch
    return [
        Tensor("model.visual.embeddings.position_embedding.weight", (side * side, tower.hidden), 1, "embedding"),
        *norm("model.visual.post_conv_layernorm", tower.hidden),
        *layers(tower, BLOCK, GATED, qkv_bias=bias, out_bias=False, mlp_bias=False),
        *around(vision, tower, vision.size("intermediate_size", kind="intermediate")),
    ]


def visual_ocr(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """GLM OCR's: norms of heads. Its merger is three times as wide inside as what it gives."""
    bias, head = vision.flag("attention_bias"), tower.hidden // tower.heads
    return [
        *layers(tower, BLOCK, GATED, qkv_bias=bias, out_bias=bias, mlp_bias=bias, normed=head),
        *around(vision, tower, out_of(vision) * vision.size("in_channels", "in_chans")),
    ]


def around(vision: Config, tower: VisionTower, inner: int) -> list[Tensor]:
    """What stands before and behind the layers; ``inner``: elements inside of the merger."""
    width, out, merge = tower.hidden, out_of(vision), vision.size("spatial_merge_size")
    merger = "model.visual.merger"
    return [
        *patch_projection(vision, width, bias=True),
        *norm("model.visual.post_layernorm", width),
        *convolution("model.visual.downsample", (out, width, merge, merge)),
        *linear(f"{merger}.proj", out, out),
        *norm(f"{merger}.post_projection_norm", out, bias=True),
        *gated_mlp(merger, out, inner, 1),
    ]


GLM4V = Multimodal(
    "GLM 4.1V and 4.6V Flash: GLM-4 behind an image encoder whose patches are merged by a convolution",
    text=DENSE,
    vision=Own(VISION, visual, read),
    code=Code(liger=True),
)
ROWS: Mapping[str, Multimodal] = {
    "glm46v": replace(
        GLM4V,
        about="GLM 4.6V as transformers' class of that name has it: GLM 4.1V's or 4.5V's parts, whichever it names",
        text=either,
        code=Code(),
    ),
    "glm4v": GLM4V,
    "glm4v_moe": replace(
        GLM4V,
        about="GLM 4.5V and 4.6V: GLM 4.5 Air behind GLM 4.1V's image encoder",
        text=MIXED,
        notes=known("glm4_moe").notes,
    ),
    "glm_ocr": Multimodal(
        "GLM OCR: GLM 4.1V's layers without biases in the text, and norms of heads in the image encoder",
        text=Text("glm4", name="glm_ocr_text", defaults=OCR_TEXT, fixed={"attention_bias": False}, tied=tied_anywhere),
        vision=Own(defaults("glm_ocr.vision_config"), visual_ocr, read_ocr),
        notes=("no multi-token-prediction layers (transformers does not load those of a checkpoint)",),
    ),
}
