"""EXAONE 4.5: EXAONE 4 behind Qwen 2.5 VL's image encoder, whose heads share keys and values."""

from __future__ import annotations

from lintfit.catalog.architectures import known, qwen2_5_vl, qwen2_vl
from lintfit.catalog.architectures._blocks import Shape, gated_mlp, linear, norm
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

EXAONE4 = known("exaone4")

REQUIRED = ("text_config",)
DEFAULTS = defaults("exaone4_5")
VISION = defaults("exaone4_5.vision_config")
NOTES = ("no multi-token-prediction layers (transformers does not load those of a checkpoint)",)


def text_of(config: Config) -> Config:
    tied = config.flag("tie_word_embeddings")
    return part(config, "text_config", EXAONE4.defaults, tie_word_embeddings=tied)


def language(config: Config) -> tuple[str, Config]:
    return "exaone4", text_of(config)


def shape(config: Config) -> Shape:
    tower = qwen2_5_vl.tower_of(part(config, "vision_config", VISION))
    return replace(EXAONE4.shape(text_of(config)), vision=tower)


def tensors(config: Config) -> tuple[Tensor, ...]:
    vision = part(config, "vision_config", VISION)
    tower = qwen2_5_vl.tower_of(vision)
    width, depth, block = tower.hidden, tower.layers, "model.visual.blocks.{}"
    fused = width + 2 * vision.size("num_key_value_heads", kind="heads") * (width // tower.heads)
    blocks = [
        *norm(f"{block}.norm1", width, depth),
        *norm(f"{block}.norm2", width, depth),
        *linear(f"{block}.attn.qkv", fused, width, depth, bias=True),
        *linear(f"{block}.attn.proj", width, width, depth, bias=True),
        *gated_mlp(f"{block}.mlp", width, tower.intermediate, depth, bias=True),
    ]
    return (
        *qwen2_vl.patch_projection(vision, width),
        *(replace(tensor, where="vision") for tensor in blocks),
        *qwen2_vl.merger(vision, width, vision.size("out_hidden_size", kind="hidden"), norm_bias=False),
        *language_model(EXAONE4, text_of(config)),
    )
