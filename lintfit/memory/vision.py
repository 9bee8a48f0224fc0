"""What a vision tower may take on top: how many images a sample has no spec says, so that only a range can be given."""

from __future__ import annotations

from lintfit.catalog.facts import VisionTower
from lintfit.memory.parameters import inventory
from lintfit.memory.spec import Spec

LAYER = 34
"""Bytes that a transformer layer saves per position and hidden unit in 16 bits, without the attention's scores
(Korthikanti et al. 2022, arXiv 2205.05198, equation 1: sbh(34 + 5as/h))."""
SCORES = 5
"""Bytes a head and pair of positions of the attention's scores, where they are made (the same equation)."""
MERGED = 4
"""Patches to a token of models that merge two by two (Qwen2-VL ``spatial_merge_size`` 2)."""


def tower_bytes(spec: Spec) -> int:
    """Bytes to plan for: one image a sequence, or as many patches as its tokens may stand for where sizes vary.

    A tower that trains saves every layer (under checkpointing their inputs, and one layer while it is computed again);
    a frozen one makes one layer at a time. 0 for a model without a tower.
    """
    tower = spec.facts.vision
    if tower is None:
        return 0
    patches = _patches(tower, spec) * spec.micro_batch_size
    half = spec.mixed_precision != "no" or spec.weights_dtype != "fp32"
    layer = LAYER * tower.hidden * patches
    if spec.attention == "eager":
        layer += SCORES * tower.heads * patches * _patches(tower, spec)
    if not _trains(spec):
        saved = layer
    elif spec.gradient_checkpointing is False:
        saved = layer * tower.layers
    else:
        saved = layer + 2 * tower.hidden * patches * tower.layers
    return saved if half else 2 * saved


def _patches(tower: VisionTower, spec: Spec) -> int:
    if tower.image_size is None or tower.tokens is None:
        return MERGED * spec.seq_len
    return (tower.image_size // tower.patch) ** 2


def _trains(spec: Spec) -> bool:
    return any(weight.where == "vision" and weight.trainable for weight in inventory(spec).weights)
