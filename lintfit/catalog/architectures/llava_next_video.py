"""LLaVA-NeXT-Video: LLaVA-NeXT, whose frames of videos are pooled before they are projected."""

from __future__ import annotations

from lintfit.catalog.architectures import llava, llava_next
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = llava_next.REQUIRED
DEFAULTS = defaults(
    "llava_next_video",
    vision_config=llava_next.DEFAULTS["vision_config"],
    image_grid_pinpoints=llava_next.DEFAULTS["image_grid_pinpoints"],
)
NOTES = ("of videos their tokens alone, as a sequence has them",)
normalised = llava.tied_as_the_text


def language(config: Config) -> tuple[str, Config]:
    return llava_next.language(config)


def shape(config: Config) -> Shape:
    return llava_next.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    found = llava_next.tensors(config)
    if config.text("spatial_pool_mode") != "conv":
        return found
    width, side = llava.vision_of(config).numbers.hidden, config.size("spatial_pool_stride")
    out = config.size("spatial_pool_out_channels", kind="hidden", default=width)
    pool = "model.vision_resampler.pool"
    weight = Tensor(f"{pool}.weight", (out, width, side, side), 1, "conv", "vision")
    return (*found, weight, Tensor(f"{pool}.bias", (out,), 1, "bias", "vision"))
