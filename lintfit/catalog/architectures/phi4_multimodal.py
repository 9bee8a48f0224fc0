"""Phi 4 multimodal: Phi 4 mini with SigLIP for images and a conformer for sound.

transformers' own class (``phi4_multimodal``) loads the adapters for either as PEFT's; the code beside the weights
(``phi4mm``) has them built in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.architectures._multimodal import part, siglip, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

PHI3 = known("phi3")

REQUIRED = KEYS
DEFAULTS = defaults("phi4_multimodal")
VISION = defaults("phi4_multimodal.vision_config")
AUDIO = defaults("phi4_multimodal.audio_config")
BUILT_IN = ("vision_lora", "speech_lora")
"""Sections of a config of ``phi4mm`` that say the rank of adapters on every projection of the text's layers."""
CROPS = 36
"""Squares that the processor cuts an image into at most, the whole beside them (``dynamic_hd``)."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``phi4mm`` says of its encoder of sound how far apart positions may be, and has it as published otherwise."""
    sound = given.get("audio_processor")
    inner = sound.get("config") if isinstance(sound, Mapping) else None
    bias = inner.get("relative_attention_bias_args") if isinstance(inner, Mapping) else None
    if "audio_config" in given or not isinstance(bias, Mapping) or "t5_bias_max_distance" not in bias:
        return given
    return {**given, "audio_config": {"bias_max_distance": bias["t5_bias_max_distance"]}}


def vision_of(config: Config) -> Config:
    return part(config, "vision_config", VISION)


def tower(vision: Config) -> VisionTower:
    """The numbers of SigLIP, whose patches are averaged two by two; a side that is odd is filled up."""
    numbers = tower_of(vision)
    side = -(-((numbers.image_size or 0) // numbers.patch) // 2)
    return replace(numbers, tokens=side * side, tiles=CROPS + 1)


def shape(config: Config) -> Shape:
    return replace(PHI3.shape(config), vision=tower(vision_of(config)))


def tensors(config: Config) -> tuple[Tensor, ...]:
    vision, hidden = vision_of(config), PHI3.shape(config).hidden
    audio, width = part(config, "audio_config", AUDIO), tower_of(vision).hidden
    seen, heard = "model.embed_tokens_extend.image_embed", "model.embed_tokens_extend.audio_embed"
    sound = audio.size("hidden_size", kind="hidden") * audio.size("downsample_rate")
    beside = [
        *siglip(vision, f"{seen}.img_processor", pooling=True),
        *linear(f"{seen}.img_projection_up", hidden, width, bias=True),
        *linear(f"{seen}.img_projection_down", hidden, hidden, bias=True),
        Tensor(f"{seen}.global_img_feature_extensor", (1, 1, width), 1, "other"),
        Tensor(f"{seen}.sub_img_feature_extensor", (1, 1, 1, width), 1, "other"),
        *_conformer(audio, f"{heard}.encoder"),
    ]
    for use in ("speech", "vision_speech"):
        beside += linear(f"{heard}.up_proj_for_{use}", hidden, sound, bias=True)
        beside += linear(f"{heard}.down_proj_for_{use}", hidden, hidden, bias=True)
    own = [tensor for key in BUILT_IN for tensor in _adapters(config, key)]
    return (*PHI3.tensors(config), *own, *(replace(tensor, where="vision") for tensor in beside))


def _adapters(config: Config, key: str) -> list[Tensor]:
    """The adapters that the model brings along; none where its config says of none."""
    if not config.section(key):
        return []
    rank = part(config, key, {}).size("r")
    found: list[Tensor] = []
    for tensor in PHI3.tensors(config):
        if tensor.where == "layer" and tensor.role == "linear":
            rows, columns = tensor.shape
            module, use = tensor.name.rpartition(".")[0], key.removesuffix("_lora")
            found.append(Tensor(f"{module}.lora_A.{use}.weight", (rank, columns), tensor.copies, "other"))
            found.append(Tensor(f"{module}.lora_B.{use}.weight", (rows, rank), tensor.copies, "other"))
    return found


def _conformer(audio: Config, name: str) -> list[Tensor]:
    """The encoder of sound: convolutions that shorten it, and blocks of attention and convolution between two MLPs."""
    width, blocks = audio.size("hidden_size", kind="hidden"), audio.size("num_blocks", kind="layers")
    inner, heads = audio.size("intermediate_size", kind="intermediate"), audio.size("num_attention_heads", kind="heads")
    buckets = audio.size("bias_max_distance") * (1 if audio.flag("bias_symmetric") else 2)
    head, block = width // heads, f"{name}.encoders.{{}}"
    found = [
        *_subsampling(audio, f"{name}.embed", width),
        Tensor(f"{name}.relative_attention_bias_layer.bias_values.weight", (buckets, heads), 1, "embedding"),
        *_convolutions(audio, f"{block}.conv", width, blocks),
        *norm(f"{block}.layer_norm_att", width, blocks, bias=True),
        *norm(f"{block}.layer_norm", width, blocks, bias=True),
        *linear(f"{block}.self_attn.o_proj", width, heads * head, blocks, bias=True),
    ]
    for projection in ("q_proj", "k_proj", "v_proj"):
        found += linear(f"{block}.self_attn.{projection}", heads * head, width, blocks, bias=True)
    for mlp in (f"{block}.feed_forward_in", f"{block}.feed_forward_out"):
        found += norm(f"{mlp}.layer_norm", width, blocks, bias=True)
        found += linear(f"{mlp}.gate_up_proj", 2 * inner, width, blocks, bias=True)
        found += linear(f"{mlp}.down_proj", width, inner, blocks, bias=True)
    return found


def _convolution(name: str, shape: tuple[int, ...], copies: int = 1) -> list[Tensor]:
    return [Tensor(f"{name}.weight", shape, copies, "conv"), Tensor(f"{name}.bias", shape[:1], copies, "bias")]


def _convolutions(audio: Config, name: str, width: int, blocks: int) -> list[Tensor]:
    """A gated one over positions, one over channels and one over neighbours, and one more over positions."""
    out, mixed = audio.size("ext_pw_out_channel"), width * audio.size("depthwise_multiplier")
    return [
        *norm(f"{name}.layer_norm", width, blocks, bias=True),
        Tensor(f"{name}.glu.b1", (1, out, 1), blocks, "other"),
        Tensor(f"{name}.glu.b2", (1, out, 1), blocks, "other"),
        *_convolution(f"{name}.glu.ext_pw_conv_1d", (2 * out, width, 1), blocks),
        *_convolution(f"{name}.dw_sep_conv_1d.dw_conv", (mixed, 1, audio.size("kernel_size")), blocks),
        *_convolution(
            f"{name}.dw_sep_conv_1d.pw_conv", (audio.size("depthwise_separable_out_channel"), mixed, 1), blocks
        ),
        *_convolution(f"{name}.ext_pw_conv_1d", (out, width, 1), blocks),
    ]


def _subsampling(audio: Config, name: str, width: int) -> list[Tensor]:
    """Convolutions that each halve the time and the frequencies."""
    channels, reduction = audio.size("nemo_conv_channels"), audio.size("time_reduction")
    if reduction % 2:
        raise audio.error("time_reduction", "must be even")
    times, size = int(math.log2(reduction)), audio.size("input_size")
    for _ in range(times):
        size = -(-size // 2)
    found = _convolution(f"{name}.conv.0", (channels, 1, 3, 3))
    for index in range(times - 1):
        found += _convolution(f"{name}.conv.{2 + 3 * index}", (channels, 1, 3, 3))
        found += _convolution(f"{name}.conv.{3 + 3 * index}", (channels, channels, 1, 1))
    return [*found, *linear(f"{name}.out", width, channels * size, bias=True)]
