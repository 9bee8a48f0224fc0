"""Qwen 2.5 Omni's thinker: Qwen 2.5 with an encoder of images and one of sound.

The whole model (``qwen2_5_omni``) has a second one beside it that speaks. What is trained is the thinker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known, qwen2_5_vl, qwen2_vl
from lintfit.catalog.architectures._blocks import Shape, gated_mlp, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

QWEN2 = known("qwen2")

REQUIRED = ("text_config",)
DEFAULTS = defaults("qwen2_5_omni_thinker")
TEXT: Mapping[str, Any] = {
    **QWEN2.defaults,
    "vocab_size": 152064,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "max_window_layers": 28,
}
VISION: Mapping[str, Any] = qwen2_5_vl.VISION
AUDIO = defaults("qwen2_5_omni_thinker.audio_config")
NOTES = ("the thinker alone, without the talker and its voice; of sound its encoder's parameters and nothing else",)


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config of the whole model has the thinker's in a section."""
    thinker = given.get("thinker_config")
    if not isinstance(thinker, Mapping):
        return given
    named = {key: given[key] for key in ("dtype", "torch_dtype", "quantization_config") if key in given}
    return {**named, **{key: value for key, value in thinker.items() if value is not None}}


def text_of(config: Config) -> Config:
    return part(config, "text_config", TEXT, tie_word_embeddings=config.flag("tie_word_embeddings"))


def language(config: Config) -> tuple[str, Config]:
    return "qwen2_5_omni_text", text_of(config)


def shape(config: Config) -> Shape:
    tower = qwen2_5_vl.tower_of(part(config, "vision_config", VISION))
    return replace(QWEN2.shape(text_of(config)), vision=tower)


def tensors(config: Config) -> tuple[Tensor, ...]:
    seen, heard = part(config, "vision_config", VISION), part(config, "audio_config", AUDIO)
    return (*_visual(seen), *_heard(heard), *language_model(QWEN2, text_of(config)))


def _visual(vision: Config) -> list[Tensor]:
    """Qwen 2.5 VL's encoder, whose queries, keys and values have a projection each."""
    tower = qwen2_5_vl.tower_of(vision)
    width, depth, block = tower.hidden, tower.layers, "model.visual.blocks.{}"
    blocks = [
        *norm(f"{block}.norm1", width, depth),
        *norm(f"{block}.norm2", width, depth),
        *gated_mlp(f"{block}.mlp", width, tower.intermediate, depth, bias=True),
    ]
    for projection in ("q", "k", "v", "proj"):
        blocks += linear(f"{block}.attn.{projection}", width, width, depth, bias=True)
    return [
        *qwen2_vl.patch_projection(vision, width),
        *(replace(tensor, where="vision") for tensor in blocks),
        *qwen2_vl.merger(vision, width, vision.size("out_hidden_size", kind="hidden"), norm_bias=False),
    ]


def _heard(audio: Config) -> list[Tensor]:
    """The encoder of sound: two convolutions, Whisper's layers, and a projection."""
    width, depth = audio.size("d_model", kind="hidden"), audio.size("encoder_layers", kind="layers")
    inner, out = audio.size("encoder_ffn_dim", kind="intermediate"), audio.size("output_dim", kind="hidden")
    name, layer = "model.audio_tower", "model.audio_tower.layers.{}"
    found = [
        Tensor(f"{name}.conv1.weight", (width, audio.size("num_mel_bins"), 3), 1, "conv"),
        Tensor(f"{name}.conv1.bias", (width,), 1, "bias"),
        Tensor(f"{name}.conv2.weight", (width, width, 3), 1, "conv"),
        Tensor(f"{name}.conv2.bias", (width,), 1, "bias"),
        Tensor(f"{name}.audio_bos_eos_token.weight", (2, out), 1, "embedding"),
        *norm(f"{layer}.self_attn_layer_norm", width, depth, bias=True),
        *norm(f"{layer}.final_layer_norm", width, depth, bias=True),
        *plain_mlp(f"{layer}", width, inner, depth, up="fc1", down="fc2"),
        *norm(f"{name}.ln_post", width, bias=True),
        *linear(f"{name}.proj", out, width, bias=True),
    ]
    for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
        found += linear(f"{layer}.self_attn.{projection}", width, width, depth, bias=projection != "k_proj")
    return [replace(tensor, where="vision") for tensor in found]
