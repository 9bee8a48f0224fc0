"""Small configs of every architecture, with the variations that change its parameters."""

from __future__ import annotations

from tests.catalog.small import decoders, encoders, experts, hybrids, image_encoders, image_patches

SEEING = [*image_encoders.CASES, *image_patches.CASES]
"""Those that take images or sound: a model type and its config."""
CASES = [*decoders.CASES, *experts.CASES, *hybrids.CASES, *encoders.CASES, *SEEING]
"""All of them."""
