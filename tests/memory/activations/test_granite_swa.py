"""Granite Swash's layers.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from bench.fake_settings import GC
from tests.memory.activations.steps import BF16, step

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


def test_tables_of_later_layers_are_gone_before_the_first_ones_run_backward() -> None:
    """Each base frequency has tables, here a quarter of a MiB."""
    late = {**SMALL, "layer_rope_theta": [10000.0, 0, 10000.0, 50000.0]}
    sizes = [step(config, 4, 1024, {**PLAIN, **BF16, **GC}).allocated_bytes for config in (SMALL, late)]
    assert sizes[0] - sizes[1] == 2 * 1024 * 64 * 2
