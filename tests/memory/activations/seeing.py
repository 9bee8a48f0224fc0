"""Steps of small models with images, as ``bench.fake_tensors`` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.fake_settings import EVERY, LORA
from tests.memory.activations.steps import MIB, step

ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}


def counted_step(
    config: Mapping[str, Any], batch: int, seq: int, more: Mapping[str, Any], beside: Mapping[str, Any]
) -> float:
    """MiB of a step; ``beside``: the images, and what is frozen where no adapters are trained."""
    frozen = {} if "lora_rank" in more else beside
    kept = {key: value for key, value in beside.items() if key != "frozen_modules"}
    return step(config, batch, seq, {"gradient_checkpointing": False, **kept, **frozen, **more}).allocated_bytes / MIB
