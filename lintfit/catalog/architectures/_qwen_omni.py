"""The thinkers of Qwen's Omni models: a language model with an encoder of images and one of sound.

The whole models (``qwen2_5_omni``, ``qwen3_omni_moe``) have a second one beside it that speaks. What is trained is the
thinker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _qwen_vl as qwen_vl
from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import Multimodal, Parts, Text, part
from lintfit.catalog.architectures._towers import Layer, Own, convolution, layers
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

NUMBERS: Mapping[str, Any] = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
}
"""What the classes of both language models take (``Qwen2_5OmniTextConfig``, ``Qwen3OmniMoeTextConfig``)."""
SOUND = "model.audio_tower"
WHISPER = Layer(norms=("self_attn_layer_norm", "final_layer_norm"), mlp="")
NAMES = {
    ".deepstack_merger_list.": ".merger_list.",
    ".norm.": ".ln_q.",
    ".linear_fc1.": ".mlp.0.",
    ".linear_fc2.": ".mlp.2.",
}
"""What Qwen 3 VL's mergers call their parts, and what Qwen 3 Omni's do."""


def thinker(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config of the thinker; that of the whole model has it in a section."""
    thinker = given.get("thinker_config")
    if not isinstance(thinker, Mapping):
        return given
    named = {key: given[key] for key in ("dtype", "torch_dtype", "quantization_config") if key in given}
    return {**named, **{key: value for key, value in thinker.items() if value is not None}}


def _apart(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """Qwen 2.5 VL's encoder, whose queries, keys and values have a projection each."""
    style = replace(qwen_vl.GATED, inputs=("q", "k", "v"))
    return [*layers(tower, qwen_vl.BLOCK, style), *qwen_vl.around_windowed(vision, tower)]


def _renamed(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """Qwen 3 VL's encoder, whose mergers call their parts otherwise."""
    found = qwen_vl.deep(vision, tower, name)
    return [replace(each, name=_new_name(each.name)) if "merger" in each.name else each for each in found]


def _new_name(name: str) -> str:
    for old, new in NAMES.items():
        name = name.replace(old, new)
    return name


def _whisper(audio: Config) -> list[Tensor]:
    """Whisper's layers and the norm behind them."""
    tower = VisionTower(
        hidden=audio.size("d_model", kind="hidden"),
        layers=audio.size("encoder_layers", kind="layers"),
        heads=1,
        intermediate=audio.size("encoder_ffn_dim", kind="intermediate"),
        patch=1,
    )
    return [*layers(tower, f"{SOUND}.layers.{{}}", WHISPER), *norm(f"{SOUND}.ln_post", tower.hidden, bias=True)]


def _heard(parts: Parts) -> list[Tensor]:
    """Qwen 2.5's encoder of sound: two convolutions, Whisper's layers, whose keys have no bias, and a projection."""
    audio = part(parts.config, "audio_config", defaults("qwen2_5_omni_thinker.audio_config"))
    width, out = audio.size("d_model", kind="hidden"), audio.size("output_dim", kind="hidden")
    return [
        *convolution(f"{SOUND}.conv1", (width, audio.size("num_mel_bins"), 3)),
        *convolution(f"{SOUND}.conv2", (width, width, 3)),
        Tensor(f"{SOUND}.audio_bos_eos_token.weight", (2, out), 1, "embedding"),
        *(each for each in _whisper(audio) if not each.name.endswith("k_proj.bias")),
        *linear(f"{SOUND}.proj", out, width, bias=True),
    ]


def _heard_in_bands(parts: Parts) -> list[Tensor]:
    """Qwen 3's: three convolutions over what time and bands make a picture, and Whisper's layers."""
    audio = part(parts.config, "audio_config", defaults("qwen3_omni_moe_thinker.audio_config"))
    width, out = audio.size("d_model", kind="hidden"), audio.size("output_dim", kind="hidden")
    channels, bands = audio.size("downsample_hidden_size"), audio.size("num_mel_bins")
    found: list[Tensor] = []
    for number, before in ((1, 1), (2, channels), (3, channels)):
        found += convolution(f"{SOUND}.conv2d{number}", (channels, before, 3, 3))
        bands = (bands + 1) // 2
    return [
        *found,
        *linear(f"{SOUND}.conv_out", width, channels * bands),
        *_whisper(audio),
        *linear(f"{SOUND}.proj1", width, width, bias=True),
        *linear(f"{SOUND}.proj2", out, width, bias=True),
    ]


QWEN2_5 = Multimodal(
    "Qwen 2.5 Omni's thinker: Qwen 2.5 with an encoder of images and one of sound",
    text=Text(
        "qwen2",
        name="qwen2_5_omni_text",
        defaults={**known("qwen2").defaults, **NUMBERS, "vocab_size": 152064, "max_window_layers": 28},
    ),
    vision=Own(defaults("qwen2_5_vl.vision_config"), _apart, qwen_vl.windowed_numbers),
    beside=_heard,
    normalised=thinker,
    notes=("the thinker alone, without the talker and its voice; of sound its encoder's parameters and nothing else",),
)
ROWS: Mapping[str, Multimodal] = {
    "qwen2_5_omni_thinker": QWEN2_5,
    "qwen3_omni_moe_thinker": replace(
        QWEN2_5,
        about="Qwen 3 Omni's thinker: Qwen 3 with experts, Qwen 3 VL's encoder of images, and one of sound",
        text=Text(
            "qwen3_moe",
            defaults={
                **known("qwen3_moe").defaults,
                **NUMBERS,
                "vocab_size": 3584,
                "hidden_size": 2048,
                "head_dim": None,
            },
        ),
        vision=Own(defaults("qwen3_vl.vision_config"), _renamed, qwen_vl.numbers),
        beside=_heard_in_bands,
    ),
}
