"""The parts of an image encoder between the patches' embedding and what follows the encoder, in their order."""

from __future__ import annotations

from collections.abc import Collection

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.towers import mllama
from lintfit.memory.activations.towers.style import FEATURES, style, taken, tower_of, vision_config

Part = tuple[str, int | None]
"""A writer's name (:data:`.WRITERS`), and the patches of the windows that it works on; None for whole images."""

FULL_ATTENTION, WINDOW = (7, 15, 23, 31), 112
"""Layers that attend to whole images, and the pixels of a window's side (``Qwen2_5_VLVisionConfig``)."""

WINDOWED = frozenset({"exaone4_5", "qwen2_5_omni", "qwen2_5_omni_thinker", "qwen2_5_vl"})
"""Model types whose encoder attends in windows."""

DEEP_MERGING = frozenset({"qwen3_omni_moe", "qwen3_omni_moe_thinker", "qwen3_vl", "qwen3_vl_moe"})
"""Model types whose encoder has mergers inside."""

DEEP = (8, 16, 24)
"""``deepstack_visual_indexes`` of ``Qwen3VLVisionConfig``."""


def order(facts: ModelFacts) -> tuple[Part, ...]:
    """The layers whose result somebody takes, and the mergers inside the encoder."""
    if style(facts).joins:
        return tuple([(name, None) for name in mllama.stages(facts)])
    merges = _merges(facts)
    found: list[Part] = []
    for index in range(tower_of(facts).layers - style(facts).unused):
        found.append(("block", window(facts, index)))
        if index in merges:
            found.append(("inner_merge", None))
    return tuple(found)


def handed_on(facts: ModelFacts, part: int | None = None) -> int:
    """How many results of inner parts go to what follows the encoder beside the last one's.

    ``part``: those whose gradients wait while this part runs backward. They are there before the last part's backward
    begins: of Llama 3.2 Vision in one tensor, of others each for itself, up to the part that made it.
    """
    if style(facts).joins:
        parts = mllama.inner(facts)
        return len(parts) if part is None or part > min(parts) else 0
    inner = taken(facts)[:-1] if facts.model_type in FEATURES else ()
    return len([number for number in inner if part is None or number <= part])


def inner_merges(facts: ModelFacts) -> int:
    """How many mergers inside the encoder give features, which the text's first layers add to their results."""
    return sum(name == "inner_merge" for name, _ in order(facts))


def window(facts: ModelFacts, index: int) -> int | None:
    """Patches of the windows that a layer attends in; None for whole images (Qwen 2.5 VL)."""
    config = vision_config(facts)
    if facts.model_type not in WINDOWED or index in (config.get("fullatt_block_indexes") or FULL_ATTENTION):
        return None
    size = int(config.get("window_size") or WINDOW) // int(config.get("patch_size") or 14)
    return size * size


def _merges(facts: ModelFacts) -> Collection[int]:
    """The layers behind which a merger takes the states for the language model's first layers (Qwen 3 VL)."""
    stated: Collection[int] | None = vision_config(facts).get("deepstack_visual_indexes")
    return stated or (DEEP if facts.model_type in DEEP_MERGING else ())
