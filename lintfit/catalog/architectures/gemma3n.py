"""Gemma 3n (E2B, E4B) with its encoders: MobileNet v5 for images, a conformer for sound."""

from __future__ import annotations

from lintfit.catalog.architectures import _mobilenet
from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import Multimodal, Parts, Text, part
from lintfit.catalog.architectures._towers import Own
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

VISION = defaults("gemma3n.vision_config")
AUDIO = defaults("gemma3n.audio_config")
IMAGE = 768
"""Pixels of a side, which the processor makes of any image."""


def _read(vision: Config) -> VisionTower:
    """One layer as wide as what the encoder gives stands for it, which is none of transformers'."""
    if vision.text("architecture") != VISION["architecture"] or vision.size("hidden_size") != _mobilenet.OUT:
        raise vision.error("architecture", f"must be {VISION['architecture']}, {_mobilenet.OUT} wide")
    return VisionTower(_mobilenet.OUT, 1, 1, _mobilenet.OUT, IMAGE, image_size=IMAGE)


def _mobile(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    return _mobilenet.tensors(name)


def _seen(parts: Parts) -> VisionTower:
    tokens = parts.config.size("vision_soft_tokens_per_image")
    return replace(parts.tower, patch=IMAGE // max(1, int(tokens**0.5)), tokens=tokens)


def _beside(parts: Parts) -> list[Tensor]:
    audio = part(parts.config, "audio_config", AUDIO)
    words = [
        *_embedder("model.embed_vision", parts.vision, parts.hidden),
        *_embedder("model.embed_audio", audio, parts.hidden),
    ]
    return [*_heard(audio), *(replace(tensor, where="other") for tensor in words)]


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


ROW = Multimodal(
    __doc__,
    text=Text("gemma3n_text"),
    vision=Own(VISION, _mobile, _read),
    encoders=("model.vision_tower.timm_model",),
    seen=_seen,
    beside=_beside,
    notes=("of sound the encoder's parameters and what every token has of it; no clip",),
)
