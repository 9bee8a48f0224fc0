"""Kimi K2.5 and K2.6: Kimi K2, which is DeepSeek V3's architecture, behind MoonViT."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

DEEPSEEK_V3 = known("deepseek_v3")

REQUIRED = ("text_config",)
DEFAULTS = defaults("kimi_k25")
VISION = defaults("kimi_k25.vision_config")
NOTES = DEEPSEEK_V3.notes
MOST_PATCHES = 16_384
"""Patches of the largest image that the processor leaves (``max_patches`` of ``image_processing_kimi_k25.py``)."""


def text_of(config: Config) -> Config:
    tied = config.flag("tie_word_embeddings")
    return part(config, "text_config", DEEPSEEK_V3.defaults, tie_word_embeddings=tied)


def vision_of(config: Config) -> Config:
    return part(config, "vision_config", VISION)


def language(config: Config) -> tuple[str, Config]:
    return "deepseek_v3", text_of(config)


def _merged(vision: Config) -> int:
    """Patches that become one token."""
    sides = vision.numbers("merge_kernel_size")
    if len(sides) != 2 or min(sides) < 1:
        raise vision.error("merge_kernel_size", "must be two whole numbers")
    return sides[0] * sides[1]


def shape(config: Config) -> Shape:
    vision = vision_of(config)
    tower = VisionTower(
        hidden=vision.size("hidden_size", kind="hidden"),
        layers=vision.size("num_hidden_layers", kind="layers"),
        heads=vision.size("num_attention_heads", kind="heads"),
        intermediate=vision.size("intermediate_size", kind="intermediate"),
        patch=vision.size("patch_size"),
        merge=_merged(vision),
        most=MOST_PATCHES,
    )
    return replace(DEEPSEEK_V3.shape(text_of(config)), vision=tower)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, vision = shape(config), vision_of(config)
    tower = numbers.vision
    assert tower is not None
    width, depth, layer = tower.hidden, tower.layers, "model.vision_tower.layers.{}"
    patches, projector = "model.vision_tower.patch_embed", "model.mm_projector"
    grid = (vision.size("pos_emb_height"), vision.size("pos_emb_width"), width)
    merged = width * tower.merge
    found = [
        Tensor(f"{patches}.proj.weight", (width, 3, tower.patch, tower.patch), 1, "conv"),
        Tensor(f"{patches}.proj.bias", (width,), 1, "bias"),
        Tensor(f"{patches}.pos_emb.position_embeddings", grid, 1, "other"),
        *norm(f"{layer}.norm1", width, depth, bias=True),
        *norm(f"{layer}.norm2", width, depth, bias=True),
        *plain_mlp(f"{layer}.mlp", width, tower.intermediate, depth, up="fc1", down="fc2"),
        *norm("model.vision_tower.final_layernorm", width, bias=True),
        *norm(f"{projector}.pre_norm", config.size("projection_hidden_size", kind="hidden"), bias=True),
        *linear(f"{projector}.in_proj", merged, merged, bias=True),
        *linear(f"{projector}.out_proj", numbers.hidden, merged, bias=True),
    ]
    for projection in ("q_proj", "k_proj", "v_proj", "proj"):
        found += linear(f"{layer}.attn.{projection}", width, width, depth, bias=True)
    return (*(replace(tensor, where="vision") for tensor in found), *language_model(DEEPSEEK_V3, text_of(config)))
