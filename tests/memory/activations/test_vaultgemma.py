"""VaultGemma's layers against torch's own count of small ones.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD, 4 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY
from tests.memory.activations.steps import HALF_AMP, MIB, step

PLAIN = {"gradient_checkpointing": False, "evaluation": {"batch_size": 0}}
SMALL: dict[str, Any] = {
    "vocab_size": 1000,
    "num_hidden_layers": 2,
    "model_type": "vaultgemma",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 128,
    "sliding_window": 512,
}


def test_a_mask_that_no_layer_takes_is_there_in_the_forward_alone() -> None:
    """The model makes one for sliding layers where it has none (8 x 1024 tokens, a layer's forward decides)."""
    wide = {
        **SMALL, "hidden_size": 1152, "intermediate_size": 6912, "num_key_value_heads": 4, "head_dim": 256,
        "layer_types": ["full_attention"] * 2,
    }  # fmt: skip
    found = step(wide, 8, 1024, {**PLAIN, **HALF_AMP, **EVERY, "attention": "eager"})
    assert found.peak_moment.name == "layer 1, forward"
    assert found.allocated_bytes / MIB == pytest.approx(2396.04, rel=1e-4)
