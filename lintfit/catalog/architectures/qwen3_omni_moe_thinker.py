"""Qwen 3 Omni's thinker: Qwen 3 with experts, Qwen 3 VL's encoder of images, and one of sound.

The whole model (``qwen3_omni_moe``) has a second one beside it that speaks. What is trained is the thinker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known, qwen2_5_omni_thinker, qwen3_vl
from lintfit.catalog.architectures._blocks import Shape, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

QWEN3_MOE = known("qwen3_moe")

REQUIRED = ("text_config",)
DEFAULTS = defaults("qwen3_omni_moe_thinker")
TEXT: Mapping[str, Any] = {
    **QWEN3_MOE.defaults,
    "vocab_size": 3584,
    "hidden_size": 2048,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "head_dim": None,
}
AUDIO = defaults("qwen3_omni_moe_thinker.audio_config")
NOTES = qwen2_5_omni_thinker.NOTES
normalised = qwen2_5_omni_thinker.normalised


def text_of(config: Config) -> Config:
    return part(config, "text_config", TEXT, tie_word_embeddings=config.flag("tie_word_embeddings"))


def language(config: Config) -> tuple[str, Config]:
    return "qwen3_moe", text_of(config)


def shape(config: Config) -> Shape:
    return replace(
        QWEN3_MOE.shape(text_of(config)), vision=qwen3_vl.tower_of(part(config, "vision_config", qwen3_vl.VISION))
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    seen, heard = part(config, "vision_config", qwen3_vl.VISION), part(config, "audio_config", AUDIO)
    return (*_visual(seen), *_heard(heard), *language_model(QWEN3_MOE, text_of(config)))


def _visual(vision: Config) -> list[Tensor]:
    """Qwen 3 VL's encoder, whose mergers call their parts otherwise."""
    names = {
        ".deepstack_merger_list.": ".merger_list.",
        ".norm.": ".ln_q.",
        ".linear_fc1.": ".mlp.0.",
        ".linear_fc2.": ".mlp.2.",
    }
    found = []
    for tensor in qwen3_vl.visual(vision):
        name = tensor.name
        if "merger" in name:
            for old, new in names.items():
                name = name.replace(old, new)
        found.append(replace(tensor, name=name))
    return found


def _heard(audio: Config) -> list[Tensor]:
    """The encoder of sound: three convolutions over what time and bands make a picture, and Whisper's layers."""
    width, depth = audio.size("d_model", kind="hidden"), audio.size("encoder_layers", kind="layers")
    inner, out = audio.size("encoder_ffn_dim", kind="intermediate"), audio.size("output_dim", kind="hidden")
    channels, bands = audio.size("downsample_hidden_size"), audio.size("num_mel_bins")
    name, layer = "model.audio_tower", "model.audio_tower.layers.{}"
    found: list[Tensor] = []
    before = 1
    for number in (1, 2, 3):
        found += [
            Tensor(f"{name}.conv2d{number}.weight", (channels, before, 3, 3), 1, "conv"),
            Tensor(f"{name}.conv2d{number}.bias", (channels,), 1, "bias"),
        ]
        before, bands = channels, (bands + 1) // 2
    found += [
        *linear(f"{name}.conv_out", width, channels * bands),
        *norm(f"{layer}.self_attn_layer_norm", width, depth, bias=True),
        *norm(f"{layer}.final_layer_norm", width, depth, bias=True),
        *plain_mlp(layer, width, inner, depth, up="fc1", down="fc2"),
        *norm(f"{name}.ln_post", width, bias=True),
        *linear(f"{name}.proj1", width, width, bias=True),
        *linear(f"{name}.proj2", out, width, bias=True),
    ]
    for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
        found += linear(f"{layer}.self_attn.{projection}", width, width, depth, bias=True)
    return [replace(tensor, where="vision") for tensor in found]
