"""Granite Swash's layers against torch's own count of small ones.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD, 4 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

PLAIN = {"gradient_checkpointing": False, "evaluation": {"batch_size": 0}}
SMALL: dict[str, Any] = {
    "vocab_size": 1000,
    "num_hidden_layers": 4,
    "model_type": "granite_swa",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "bos_token_id": 1,
    "eos_token_id": 1,
    "residual_multiplier": 0.22,
    "embedding_multiplier": 12.0,
    "layer_rope_theta": [50000.0, 10000.0, 0, 10000.0],
}
UNGROUPED: dict[str, Any] = {
    "vocab_size": 1000,
    "num_hidden_layers": 2,
    "model_type": "granite_swa",
    "hidden_size": 1024,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "bos_token_id": 1,
    "eos_token_id": 1,
}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 1524.173),
        (SMALL, AMP, 2020.762),
        (SMALL, FP32, 1967.075),
        (SMALL, {**BF16, **GC}, 535.842),
        (SMALL, {**HALF_AMP, **EVERY, **REENTRANT}, 549.585),
        (UNGROUPED, BF16, 945.064),
        (UNGROUPED, AMP, 1333.485),
        (UNGROUPED, FP32, 1329.422),
        (UNGROUPED, {**BF16, **GC}, 584.791),
        (UNGROUPED, {**HALF_AMP, **EVERY, **REENTRANT}, 609.646),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    assert step(config, 4, 1024, {**PLAIN, **more}).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_tables_of_later_layers_are_gone_before_the_first_ones_run_backward() -> None:
    """Each base frequency has tables, here a quarter of a MiB."""
    late = {**SMALL, "layer_rope_theta": [10000.0, 0, 10000.0, 50000.0]}
    sizes = [step(config, 4, 1024, {**PLAIN, **BF16, **GC}).allocated_bytes for config in (SMALL, late)]
    assert sizes[0] - sizes[1] == 2 * 1024 * 64 * 2
