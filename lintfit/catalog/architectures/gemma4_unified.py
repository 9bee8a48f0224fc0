"""Gemma 4 without encoders (12B): pixels and sound go through a norm and a projection between the words."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

GEMMA4_TEXT = known("gemma4_text")

REQUIRED = ("text_config",)
DEFAULTS = defaults("gemma4_unified", vision_soft_tokens_per_image=280)
# The class has none of the keys for the parts of Gemma 4 that this model goes without.
TEXT = defaults(
    "gemma4_unified.text_config",
    vocab_size_per_layer_input=262144,
    hidden_size_per_layer_input=0,
    enable_moe_block=False,
    global_head_dim=512,
)
VISION = defaults("gemma4_unified.vision_config")
AUDIO = defaults("gemma4_unified.audio_config")
CHANNELS = 3


def text_of(config: Config) -> Config:
    """The language model's part: it has neither experts nor inputs of its own for every layer."""
    own = {"enable_moe_block": False, "hidden_size_per_layer_input": 0}
    return part(config, "text_config", TEXT, tie_word_embeddings=config.flag("tie_word_embeddings"), **own)


def language(config: Config) -> tuple[str, Config]:
    return "gemma4_text", text_of(config)


def _patch(vision: Config) -> int:
    """Pixels along a side of what becomes a token."""
    return vision.size("patch_size") * vision.size("pooling_kernel_size")


def shape(config: Config) -> Shape:
    numbers = GEMMA4_TEXT.shape(text_of(config))
    if config.get("vision_config") is None:
        return numbers
    vision = part(config, "vision_config", VISION)
    width = vision.size("mm_embed_dim", kind="hidden")
    tokens = config.size("vision_soft_tokens_per_image")
    tower = VisionTower(width, 1, 1, width, _patch(vision), tokens=tokens, merge=1, most=tokens)
    return replace(numbers, vision=tower)


def tensors(config: Config) -> tuple[Tensor, ...]:
    text = text_of(config)
    hidden = GEMMA4_TEXT.shape(text).hidden
    found: list[Tensor] = []
    if config.get("vision_config") is not None:
        vision, name = part(config, "vision_config", VISION), "model.embed_vision"
        width, pixels = vision.size("mm_embed_dim", kind="hidden"), CHANNELS * _patch(vision) ** 2
        out = vision.size("output_proj_dims", kind="hidden")
        found += [
            Tensor(f"{name}.pos_embedding", (vision.size("mm_posemb_size"), 2, width), 1, "other"),
            *norm(f"{name}.patch_ln1", pixels, bias=True),
            *linear(f"{name}.patch_dense", width, pixels, bias=True),
            *norm(f"{name}.patch_ln2", width, bias=True),
            *norm(f"{name}.pos_norm", width, bias=True),
            *linear(f"{name}.multimodal_embedder.embedding_projection", hidden, out),
        ]
    if config.get("audio_config") is not None:
        sound = part(config, "audio_config", AUDIO).size("audio_embed_dim", kind="hidden")
        found += linear("model.embed_audio.embedding_projection", hidden, sound)
    return (*(replace(tensor, where="vision") for tensor in found), *language_model(GEMMA4_TEXT, text))
