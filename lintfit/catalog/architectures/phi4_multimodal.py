"""Phi 4 multimodal: Phi 4 mini with SigLIP for images and a conformer for sound.

transformers' own class (``phi4_multimodal``) loads the adapters for either as PEFT's; the code beside the weights
(``phi4mm``) has them built in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.architectures._multimodal import LanguageModel, Multimodal, Parts, part
from lintfit.catalog.architectures._towers import Own, convolution, pooling_head, siglip_without_head
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

PHI3 = known("phi3")

SEEN, HEARD = "model.embed_tokens_extend.image_embed", "model.embed_tokens_extend.audio_embed"
AUDIO = defaults("phi4_multimodal.audio_config")
BUILT_IN = ("vision_lora", "speech_lora")
"""Sections of a config of ``phi4mm`` that say the rank of adapters on every projection of the text's layers."""
CROPS = 36
"""Squares that the processor cuts an image into at most, the whole beside them (``dynamic_hd``)."""


def _distances(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``phi4mm`` says of its encoder of sound how far apart positions may be, and has it as published otherwise."""
    sound = given.get("audio_processor")
    inner = sound.get("config") if isinstance(sound, Mapping) else None
    bias = inner.get("relative_attention_bias_args") if isinstance(inner, Mapping) else None
    if "audio_config" in given or not isinstance(bias, Mapping) or "t5_bias_max_distance" not in bias:
        return given
    return {**given, "audio_config": {"bias_max_distance": bias["t5_bias_max_distance"]}}


def _text(config: Config) -> LanguageModel:
    """Phi 4 mini by the model's own keys, with the adapters that it brings along."""
    return LanguageModel("phi3", replace(PHI3, tensors=_adapted), config)


def _adapted(config: Config) -> tuple[Tensor, ...]:
    return (*PHI3.tensors(config), *(tensor for key in BUILT_IN for tensor in _adapters(config, key)))


def _siglip(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    return [*siglip_without_head(vision, tower, name), *pooling_head(tower, f"{name}.head")]


def _seen(parts: Parts) -> VisionTower:
    """SigLIP's patches are averaged two by two; a side that is odd is filled up."""
    side = -(-((parts.tower.image_size or 0) // parts.tower.patch) // 2)
    return replace(parts.tower, tokens=side * side, tiles=CROPS + 1)


def _beside(parts: Parts) -> list[Tensor]:
    """The projectors, and all of the sound."""
    hidden, width, audio = parts.hidden, parts.tower.hidden, part(parts.config, "audio_config", AUDIO)
    sound = audio.size("hidden_size", kind="hidden") * audio.size("downsample_rate")
    found = [
        *linear(f"{SEEN}.img_projection_up", hidden, width, bias=True),
        *linear(f"{SEEN}.img_projection_down", hidden, hidden, bias=True),
        Tensor(f"{SEEN}.global_img_feature_extensor", (1, 1, width), 1, "other"),
        Tensor(f"{SEEN}.sub_img_feature_extensor", (1, 1, 1, width), 1, "other"),
        *_conformer(audio, f"{HEARD}.encoder"),
    ]
    for use in ("speech", "vision_speech"):
        found += linear(f"{HEARD}.up_proj_for_{use}", hidden, sound, bias=True)
        found += linear(f"{HEARD}.down_proj_for_{use}", hidden, hidden, bias=True)
    return found


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


def _convolutions(audio: Config, name: str, width: int, blocks: int) -> list[Tensor]:
    """A gated one over positions, one over channels and one over neighbours, and one more over positions."""
    out, mixed = audio.size("ext_pw_out_channel"), width * audio.size("depthwise_multiplier")
    return [
        *norm(f"{name}.layer_norm", width, blocks, bias=True),
        Tensor(f"{name}.glu.b1", (1, out, 1), blocks, "other"),
        Tensor(f"{name}.glu.b2", (1, out, 1), blocks, "other"),
        *convolution(f"{name}.glu.ext_pw_conv_1d", (2 * out, width, 1), blocks),
        *convolution(f"{name}.dw_sep_conv_1d.dw_conv", (mixed, 1, audio.size("kernel_size")), blocks),
        *convolution(
            f"{name}.dw_sep_conv_1d.pw_conv", (audio.size("depthwise_separable_out_channel"), mixed, 1), blocks
        ),
        *convolution(f"{name}.ext_pw_conv_1d", (out, width, 1), blocks),
    ]


def _subsampling(audio: Config, name: str, width: int) -> list[Tensor]:
    """Convolutions that each halve the time and the frequencies."""
    channels, reduction = audio.size("nemo_conv_channels"), audio.size("time_reduction")
    if reduction % 2:
        raise audio.error("time_reduction", "must be even")
    times, size = int(math.log2(reduction)), audio.size("input_size")
    for _ in range(times):
        size = -(-size // 2)
    found = convolution(f"{name}.conv.0", (channels, 1, 3, 3))
    for index in range(times - 1):
        found += convolution(f"{name}.conv.{2 + 3 * index}", (channels, 1, 3, 3))
        found += convolution(f"{name}.conv.{3 + 3 * index}", (channels, channels, 1, 1))
    return [*found, *linear(f"{name}.out", width, channels * size, bias=True)]


ROW = Multimodal(
    __doc__,
    text=_text,
    apart=False,
    prefix="model.",
    vision=Own(defaults("phi4_multimodal.vision_config"), _siglip),
    encoders=(f"{SEEN}.img_processor",),
    required=KEYS,
    seen=_seen,
    beside=_beside,
    normalised=_distances,
)
