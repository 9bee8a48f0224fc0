"""PaddleOCR-VL: SigLIP over images of their own size, a merger of patches, and ERNIE 4.5's shape with a config of its
own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import TIED, Multimodal, Parts, Text
from lintfit.catalog.architectures._towers import Own, siglip_without_head
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

MOST_PATCHES = 14_400
"""Patches of the largest image that the published processor leaves (``max_pixels`` 2,822,400)."""


def _text_inside(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Published configs state what the language model is among the model's own keys."""
    if "text_config" in given:
        return given
    inner = {key: given[key] for key in known("ernie4_5").defaults if key in given and key != TIED}
    return {**given, "text_config": inner}


def _tied(config: Config) -> bool:
    """The language model ties its head unless it says otherwise itself: what published configs say of it stands outside
    and does not reach it (``PaddleOCRVLConfig.__post_init__``)."""
    return config.flag(TIED) or config.section("text_config").get(TIED) is not False


def _seen(parts: Parts) -> VisionTower:
    """The encoder's numbers; the size of its grid of positions bounds no image."""
    merge = parts.vision.size("spatial_merge_size") ** 2
    return replace(parts.tower, image_size=None, merge=merge, most=MOST_PATCHES)


def _projector(parts: Parts) -> list[Tensor]:
    width, merged = parts.tower.hidden, parts.tower.hidden * parts.vision.size("spatial_merge_size") ** 2
    return [
        *norm("model.projector.pre_norm", width, bias=True),
        *linear("model.projector.linear_1", merged, merged, bias=True),
        *linear("model.projector.linear_2", parts.hidden, merged, bias=True),
    ]


ROW = Multimodal(
    __doc__,
    text=Text("ernie4_5", name="paddleocr_vl_text", tied=_tied),
    vision=Own(defaults("paddleocr_vl.vision_config"), siglip_without_head),
    encoders=("model.visual.vision_model",),
    required=(),
    seen=_seen,
    beside=_projector,
    normalised=_text_inside,
)
