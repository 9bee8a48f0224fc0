"""Qwen 3 VL, dense: learnt positions and features of several encoder layers fed into the language model."""

from __future__ import annotations

from lintfit.catalog.architectures import known, qwen2_vl
from lintfit.catalog.architectures._blocks import Shape, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, VisionTower
from lintfit.frozen import replace

QWEN3 = known("qwen3")

REQUIRED = ("text_config",)
DEFAULTS = defaults("qwen3_vl")
CODE = Code(liger=True)
VISION = defaults("qwen3_vl.vision_config")


def text_of(config: Config) -> Config:
    return part(config, "text_config", QWEN3.defaults, tie_word_embeddings=config.flag("tie_word_embeddings"))


def language(config: Config) -> tuple[str, Config]:
    return "qwen3", text_of(config)


def tower_of(vision: Config) -> VisionTower:
    hidden, intermediate = (vision.size(f"{kind}_size", kind=kind) for kind in ("hidden", "intermediate"))
    return qwen2_vl.tower(vision, hidden, intermediate)


def shape(config: Config) -> Shape:
    return replace(QWEN3.shape(text_of(config)), vision=tower_of(part(config, "vision_config", VISION)))


def merger(name: str, norm_size: int, merged: int, out: int, copies: int) -> list[Tensor]:
    """The MLP from merged patches to the language model's width."""
    found = [
        *norm(f"{name}.norm", norm_size, copies, bias=True),
        *linear(f"{name}.linear_fc1", merged, merged, copies, bias=True),
        *linear(f"{name}.linear_fc2", out, merged, copies, bias=True),
    ]
    return [replace(tensor, where="vision") for tensor in found]


def visual(vision: Config) -> list[Tensor]:
    """The whole image encoder."""
    tower = tower_of(vision)
    width, depth, block = tower.hidden, tower.layers, "model.visual.blocks.{}"
    merged, out = width * vision.size("spatial_merge_size") ** 2, vision.size("out_hidden_size", kind="hidden")
    positions = (vision.size("num_position_embeddings", kind="positions"), width)
    deep = len(vision.numbers("deepstack_visual_indexes"))
    blocks = [
        *norm(f"{block}.norm1", width, depth, bias=True),
        *norm(f"{block}.norm2", width, depth, bias=True),
        *linear(f"{block}.attn.qkv", 3 * width, width, depth, bias=True),
        *linear(f"{block}.attn.proj", width, width, depth, bias=True),
        *plain_mlp(f"{block}.mlp", width, tower.intermediate, depth, up="linear_fc1", down="linear_fc2"),
    ]
    return [
        *qwen2_vl.patch_projection(vision, width, bias=True),
        Tensor("model.visual.pos_embed.weight", positions, 1, "embedding", "vision"),
        *(replace(tensor, where="vision") for tensor in blocks),
        *merger("model.visual.merger", width, merged, out, 1),
        *merger("model.visual.deepstack_merger_list.{}", merged, merged, out, deep),
    ]


def tensors(config: Config) -> tuple[Tensor, ...]:
    return (*visual(part(config, "vision_config", VISION)), *language_model(QWEN3, text_of(config)))
