"""LLaVA 1.6 (NeXT): LLaVA with a learnt line break between rows of image tiles."""

from __future__ import annotations

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = llava.REQUIRED
DEFAULTS = defaults(
    "llava_next",
    vision_config=llava.DEFAULTS["vision_config"],
    image_grid_pinpoints=[[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
)


def language(config: Config) -> tuple[str, Config]:
    return llava.language(config)


def shape(config: Config) -> Shape:
    numbers = llava.shape(config)
    assert numbers.vision is not None
    return replace(numbers, vision=replace(numbers.vision, tiles=most_tiles(config, numbers.vision.image_size or 1)))


def most_tiles(config: Config, size: int) -> int:
    """Tiles of the largest of the grids that an image may be cut into, and the whole image beside them."""
    cut = [-(-height // size) * -(-width // size) for height, width in config.pairs("image_grid_pinpoints")]
    return 1 + max(cut, default=0)


def tensors(config: Config) -> tuple[Tensor, ...]:
    newline = Tensor("model.image_newline", (shape(config).hidden,), 1, "other", "vision")
    return (newline, *llava.tensors(config))
