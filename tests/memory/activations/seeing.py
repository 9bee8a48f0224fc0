"""Steps of small models with images, as ``bench.fake_tensors`` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}

WAYS: dict[str, dict[str, Any]] = {
    "bf16": BF16,
    "autocast": AMP,
    "fp32": FP32,
    "eager": {**BF16, "attention": "eager"},
    "checkpointed": {**BF16, **GC},
    "autocast, checkpointed": {**AMP, **GC},
    "reentrant": {**BF16, **REENTRANT},
    "adapters on queries": {**HALF_AMP, **QUERIES},
    "adapters": {**HALF_AMP, **ALL},
    "adapters, checkpointed": {**HALF_AMP, **ALL, **GC},
    "adapters, reentrant": {**HALF_AMP, **ALL, **REENTRANT},
    "padded": {**BF16, "padded_batches": True},
}
"""How the small models are trained."""


def counted_evaluation(config: Mapping[str, Any], batch: int, seq: int, way: str, beside: Mapping[str, Any]) -> float:
    """MiB of an evaluation between steps, as ``bench.fake_evaluation`` runs it."""
    more = {**WAYS[way], **beside, "evaluation": {"batch_size": batch}, **GC}
    found = step(config, 2 if beside["images"] else 1, seq, more).moments
    return max(moment.allocated for moment in found if moment.phase == "evaluate") / MIB


def evaluated(config: Mapping[str, Any], batch: int, seq: int, way: str, beside: Mapping[str, Any]) -> float:
    """MiB of an evaluation on batches as large as those of the training between which it is."""
    frozen = {} if "lora_rank" in WAYS[way] else beside
    kept = {key: value for key, value in beside.items() if key != "frozen_modules"}
    more = {"gradient_checkpointing": False, **kept, **frozen, **WAYS[way], "evaluation": {"batch_size": batch}}
    found = step(config, batch, seq, more).moments
    return max(moment.allocated for moment in found if moment.phase == "evaluate") / MIB


def counted_step(
    config: Mapping[str, Any], batch: int, seq: int, way: str, beside: Mapping[str, Any], **frozen_beside: Any
) -> float:
    """MiB of a step; ``beside``: the images, and what is frozen where no adapters are trained."""
    more = {**WAYS[way], **frozen_beside}
    frozen = {} if "lora_rank" in more else beside
    kept = {key: value for key, value in beside.items() if key != "frozen_modules"}
    return step(config, batch, seq, {"gradient_checkpointing": False, **kept, **frozen, **more}).allocated_bytes / MIB
