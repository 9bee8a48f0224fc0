"""MiniCPM-V 2.5 and 2.6, by the code in their repositories: SigLIP, a resampler, and Llama 3 or Qwen 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.architectures._multimodal import Encoder, LanguageModel, Multimodal, Parts, part
from lintfit.catalog.architectures._towers import SIGLIP, siglip_without_head, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor, VisionTower
from lintfit.frozen import replace

SLICES: Mapping[str, Any] = {"max_slice_nums": 9, "scale_resolution": 448}
"""An image is cut into up to nine slices of about so many pixels a side; the whole stands beside them, as large
(OpenBMB/MiniCPM-V ``finetune/dataset.py:slice_image``)."""


def _text(config: Config) -> LanguageModel:
    """Qwen 2 since version 2.6, Llama 3 before: the config states a version since then."""
    version = config.number("version") or float(config.text("version", default="0") or 0)
    model = known("qwen2" if version >= 2.6 else "llama")
    return LanguageModel(model.name, model, Config(dict(config), model.defaults, config.origin))


def _vision(config: Config) -> Encoder:
    """The tower, whose last layer is dropped where the model says so."""
    vision = part(config, "vision_config", SIGLIP)
    if config.flag("drop_vision_last_layer"):
        layers = vision.size("num_hidden_layers", kind="layers") - 1
        vision = part(config, "vision_config", SIGLIP, num_hidden_layers=layers)
    return Encoder(vision, tower_of, siglip_without_head)


def _seen(parts: Parts) -> VisionTower:
    slices = Config(parts.config.section("slice_config"), SLICES, f"{parts.config.origin}: slice_config")
    return replace(
        parts.tower,
        tokens=parts.config.size("query_num"),
        image_size=slices.size("scale_resolution"),
        tiles=slices.size("max_slice_nums") + 1,
    )


def _resampler(parts: Parts) -> list[Tensor]:
    """One layer of cross-attention from learnt queries to patches."""
    name, hidden = "resampler", parts.hidden
    return [
        Tensor(f"{name}.query", (parts.config.size("query_num"), hidden), 1, "other"),
        *linear(f"{name}.kv_proj", hidden, parts.tower.hidden),
        Tensor(f"{name}.attn.in_proj_weight", (3 * hidden, hidden), 1, "other"),
        Tensor(f"{name}.attn.in_proj_bias", (3 * hidden,), 1, "bias"),
        *linear(f"{name}.attn.out_proj", hidden, hidden, bias=True),
        *(each for which in ("q", "kv", "post") for each in norm(f"{name}.ln_{which}", hidden, bias=True)),
        Tensor(f"{name}.proj", (hidden, hidden), 1, "other"),
    ]


ROW = Multimodal(
    __doc__,
    text=_text,
    vision=_vision,
    encoders=("vpm",),
    prefix="llm.",
    whole=True,
    declared=False,
    own={"tie_word_embeddings": False, "drop_vision_last_layer": False},
    required=(*KEYS, "query_num", "vision_config"),
    seen=_seen,
    beside=_resampler,
    code=Code(chooses_kernel=False),
)
