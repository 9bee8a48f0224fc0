"""Gemma 3n (E2B, E4B) with its encoders: MobileNet v5 for images, a conformer for sound."""

from __future__ import annotations

from lintfit.catalog.architectures import _mobilenet, known
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

GEMMA3N_TEXT = known("gemma3n_text")

REQUIRED = ("text_config",)
DEFAULTS = defaults("gemma3n")
VISION = defaults("gemma3n.vision_config")
AUDIO = defaults("gemma3n.audio_config")
IMAGE = 768
"""Pixels of a side, which the processor makes of any image."""
NOTES = ("of sound the encoder's parameters and what every token has of it; no clip",)


def text_of(config: Config) -> Config:
    tied = config.flag("tie_word_embeddings")
    return part(config, "text_config", GEMMA3N_TEXT.defaults, tie_word_embeddings=tied)


def language(config: Config) -> tuple[str, Config]:
    return "gemma3n_text", text_of(config)


def vision_of(config: Config) -> Config:
    vision = part(config, "vision_config", VISION)
    if vision.text("architecture") != VISION["architecture"] or vision.size("hidden_size") != _mobilenet.OUT:
        raise vision.error("architecture", f"must be {VISION['architecture']}, {_mobilenet.OUT} wide")
    return vision


def shape(config: Config) -> Shape:
    tokens = config.size("vision_soft_tokens_per_image")
    width = vision_of(config).size("hidden_size")
    patch = IMAGE // max(1, int(tokens**0.5))
    tower = VisionTower(width, 1, 1, width, patch, image_size=IMAGE, tokens=tokens)
    return replace(GEMMA3N_TEXT.shape(text_of(config)), vision=tower)


def tensors(config: Config) -> tuple[Tensor, ...]:
    text, vision, audio = text_of(config), vision_of(config), part(config, "audio_config", AUDIO)
    hidden = GEMMA3N_TEXT.shape(text).hidden
    found = [*_mobilenet.tensors("model.vision_tower.timm_model"), *_heard(audio)]
    words = [*_embedder("model.embed_vision", vision, hidden), *_embedder("model.embed_audio", audio, hidden)]
    return (
        *(replace(tensor, where="vision") for tensor in found),
        *(replace(tensor, where="other") for tensor in words),
        *language_model(GEMMA3N_TEXT, text),
    )


def _embedder(name: str, config: Config, hidden: int) -> list[Tensor]:
    """Words of its own that stand for images or sound, and the way from the encoder's width to the text's."""
    width = config.size("hidden_size", kind="hidden")
    return [
        Tensor(f"{name}.embedding.weight", (config.size("vocab_size", kind="vocab"), width), 1, "embedding"),
        *norm(f"{name}.hard_embedding_norm", width),
        *norm(f"{name}.soft_embedding_norm", width),
        *linear(f"{name}.embedding_projection", hidden, width),
    ]


def _heard(audio: Config) -> list[Tensor]:
    """The encoder of sound: two convolutions, a projection, and conformer blocks."""
    width, depth = audio.size("hidden_size", kind="hidden"), audio.size("conf_num_hidden_layers", kind="layers")
    first, second = audio.numbers("sscp_conv_channel_size")
    sides, strides = audio.pairs("sscp_conv_kernel_size"), audio.pairs("sscp_conv_stride_size")
    name, block = "model.audio_tower", "model.audio_tower.conformer.{}"
    bands = audio.size("input_feat_size")
    found: list[Tensor] = []
    for number, (before, after) in enumerate(((1, first), (first, second))):
        place = f"{name}.subsample_conv_projection.conv_{number}"
        found += [
            Tensor(f"{place}.conv.weight", (after, before, *sides[number]), 1, "conv"),
            *norm(f"{place}.norm", after),
        ]
        bands = (bands + 2 - sides[number][1]) // strides[number][1] + 1
    found += linear(f"{name}.subsample_conv_projection.input_proj_linear", width, second * bands)
    for end in ("start", "end"):
        ffw = f"{block}.ffw_layer_{end}"
        found += [
            *norm(f"{ffw}.pre_layer_norm", width, depth),
            *linear(f"{ffw}.ffw_layer_1", 4 * width, width, depth),
            *linear(f"{ffw}.ffw_layer_2", width, 4 * width, depth),
            *norm(f"{ffw}.post_layer_norm", width, depth),
        ]
    attention, conv = f"{block}.attention", f"{block}.lconv1d"
    for projection in ("q_proj", "k_proj", "v_proj", "relative_position_embedding.pos_proj"):
        found += linear(f"{attention}.attn.{projection}", width, width, depth)
    head = width // audio.size("conf_num_attention_heads", kind="heads")
    return [
        *found,
        Tensor(f"{attention}.attn.per_dim_scale", (head,), depth, "other"),
        *norm(f"{attention}.pre_attn_norm", width, depth),
        *linear(f"{attention}.post", width, width, depth),
        *norm(f"{attention}.post_norm", width, depth),
        *norm(f"{conv}.pre_layer_norm", width, depth),
        *linear(f"{conv}.linear_start", 2 * width, width, depth),
        Tensor(f"{conv}.depthwise_conv1d.weight", (width, 1, audio.size("conf_conv_kernel_size")), depth, "conv"),
        *norm(f"{conv}.conv_norm", width, depth),
        *linear(f"{conv}.linear_end", width, width, depth),
        *norm(f"{block}.norm", width, depth),
    ]
