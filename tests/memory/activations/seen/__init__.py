"""Small models with images, a module for each line of them."""

from __future__ import annotations

from tests.memory.activations.seen import blip, gemma, glm, idefics, llava, qwen, tiles
from tests.memory.activations.seen.common import Seen

MODELS: dict[str, Seen] = {
    **llava.MODELS,
    **gemma.MODELS,
    **tiles.MODELS,
    **idefics.MODELS,
    **qwen.MODELS,
    **glm.MODELS,
    **blip.MODELS,
}
"""By what they are called in tests."""
