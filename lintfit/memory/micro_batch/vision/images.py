"""How many pictures an encoder gets of a micro-batch's images, and how large they are.

A model resizes an image to one size, cuts it into tiles of that size beside which the whole stands, or takes it as
large as it is; ``docs/memory.md`` has a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from lintfit.catalog.facts import ModelFacts, VisionTower
from lintfit.frozen import replace
from lintfit.memory.activations.towers import mllama, style, tower_of
from lintfit.memory.loss.preference import sequences
from lintfit.memory.spec import Spec

SHRUNK = 10
"""LLaVA-OneVision makes the features of more tiles as many as nine and the whole have (``anyres_max_9``)."""

OWN_SIZE = 65_536
"""Patches of the largest image that a processor passes on where images keep their size and the model's config knows no
largest: 12,845,056 pixels in squares of 14 (Qwen 2 and 2.5 VL), 16,777,216 in squares of 16 (Qwen 3 VL), both the
``max_pixels`` or ``longest_edge`` of the models' ``preprocessor_config.json``."""


OF_IMAGES = frozenset({"images", "image_patches", "image_max_pixels"})
"""The keys of a spec that say how many images a sequence has, and how large."""

LONGEST = 200
"""Times that an image may be as long as it is high (``smart_resize`` of Qwen 2 VL's processor refuses more)."""


class Pictures(NamedTuple):
    """What the encoder gets of a micro-batch: how many pictures, patches of each, and positions beside these."""

    number: int
    patches: int
    beside: int

    @property
    def positions(self) -> int:
        """Positions of a picture in the encoder."""
        return self.patches + self.beside


def pictures(spec: Spec) -> Pictures:
    """The pictures of a micro-batch; of one image a sequence where nobody says how many there are."""
    images = 1 if spec.images is None else spec.images
    return Pictures(images * sequences(spec) * tiles(spec), patches(spec), style(spec.facts).classes)


def tiles(spec: Spec) -> int:
    """Pictures that one image becomes: as many as the model's processor makes at most and the sequence has room for."""
    tower = tower_of(spec.facts)
    if style(spec.facts).joins:
        return tower.tiles  # those that an image does not fill are padding
    if spec.image_tiles is not None:
        return spec.image_tiles
    if tower.tiles == 1 or tower.tokens is None:
        return tower.tiles
    room = spec.seq_len // (tower.tokens * max(1, spec.images or 1))
    if spec.facts.model_type == "llava_onevision" and room >= SHRUNK:
        return tower.tiles
    return max(1, min(tower.tiles, room))


def patches(spec: Spec) -> int:
    """Patches of one picture: where images keep their size, as many as the sequence has room for."""
    tower = tower_of(spec.facts)
    if style(spec.facts).joins:
        return mllama.patches(tower)
    if spec.image_patches is not None:
        return spec.image_patches
    if tower.tokens is not None and tower.image_size is not None:
        return largest(tower)
    return min(tower.merge * spec.seq_len // max(1, spec.images or 1), largest(tower, spec.image_max_pixels))


def largest(tower: VisionTower, pixels: int | None = None) -> int:
    """Patches of the largest picture that the encoder gets; ``pixels``: what the processor is told to leave of one.

    The processor rounds both sides to whole tokens. A side of less than one becomes one, so that an image as long as it
    takes (1 : 200, ``smart_resize``) may have more pixels than it is told.
    """
    if tower.image_size is not None:
        return (tower.image_size // tower.patch) ** 2
    if pixels is None:
        return tower.most or OWN_SIZE
    factor = tower.patch * math.isqrt(tower.merge)
    return max(pixels, int(factor * math.sqrt(LONGEST * pixels)), factor * factor) // tower.patch**2


def tokens(facts: ModelFacts, stated: Mapping[str, Any]) -> int:
    """Tokens of a sequence's images beside its text, where images keep a size that these keys of a spec state."""
    tower, patches = facts.vision, stated.get("image_patches")
    if tower is None or tower.tokens is not None:
        return 0
    if patches is None and stated.get("image_max_pixels") is not None:
        patches = largest(tower, stated["image_max_pixels"])
    return int((stated.get("images") or 0) * (patches or 0) // tower.merge)


def unsaid(spec: Spec) -> bool:
    """Whether the size of the images is nobody's word but the largest that it can be."""
    if not spec.images or spec.facts.vision is None:
        return False
    tower = spec.facts.vision
    if tower.tokens is None:
        return spec.image_patches is None and tower.tiles == 1
    return tower.tiles > 1 and spec.image_tiles is None


def with_an_image(spec: Spec) -> Spec:
    """The run with its images, else one a sequence, as large as they can be.

    Where images keep their size, the sequence length does not bound them, only the text beside them: Qwen2-VL-7B with
    adapters and ``max_length`` 1024 filled an A100-80GB (ms-swift issue 2010), and with 2048 four A6000 and eight A800
    (2753, 2529), until ``MAX_PIXELS`` was set.
    """
    tower, images = tower_of(spec.facts), spec.images or 1
    if tower.tokens is not None or spec.image_patches is not None:
        return replace(spec, images=images)
    seen = replace(spec, images=images, image_patches=largest(tower, spec.image_max_pixels))
    return replace(seen, seq_len=spec.seq_len + tokens(spec.facts, _stated(seen)))


def without_images(spec: Spec) -> Spec:
    """The run on text alone, which is what small images come down to; a length that is assumed counts them."""
    beside = 0 if "seq_len" in spec.stated else tokens(spec.facts, _stated(spec))
    return replace(spec, images=0, seq_len=max(1, spec.seq_len - beside))


def with_room(spec: Spec, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes, with the length that is assumed where they are of its images."""
    if "seq_len" in spec.stated or "seq_len" in changes or OF_IMAGES.isdisjoint(changes):
        return {**changes}
    before = _stated(spec)
    more = tokens(spec.facts, {**before, **changes}) - tokens(spec.facts, before)
    return {**changes, "seq_len": max(1, spec.seq_len + more)}


def _stated(spec: Spec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in OF_IMAGES}
