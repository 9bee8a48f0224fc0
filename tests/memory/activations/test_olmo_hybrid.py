"""OLMo Hybrid's layers against torch's own count of small ones.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD, 4 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from tests.memory.activations.steps import AMP, BF16, HALF_AMP, MIB, step

PLAIN = {"gradient_checkpointing": False, "evaluation": {"batch_size": 0}}
SMALL: dict[str, Any] = {
    "vocab_size": 1000,
    "num_hidden_layers": 2,
    "model_type": "olmo_hybrid",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "eos_token_id": 1,
    "layer_types": ["linear_attention", "full_attention"],
}
GROUPED: dict[str, Any] = {
    "vocab_size": 1000,
    "num_hidden_layers": 3,
    "model_type": "olmo_hybrid",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "eos_token_id": 1,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "rope_parameters": {"rope_theta": None, "rope_type": "default"},
}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 484.862),
        (SMALL, {**HALF_AMP, **EVERY, "lora_targets": ["q_proj", "v_proj"]}, 329.447),
        (SMALL, AMP, 556.604),
        (SMALL, {**BF16, **GC}, 328.272),
        (SMALL, {**AMP, **GC}, 387.768),
        (SMALL, {**HALF_AMP, **EVERY}, 459.082),
        (SMALL, {**HALF_AMP, **EVERY, **REENTRANT}, 359.511),
        (GROUPED, BF16, 707.871),
        (GROUPED, AMP, 820.653),
        (GROUPED, {**BF16, **GC}, 312.808),
        (GROUPED, {**AMP, **GC}, 378.845),
        (GROUPED, {**HALF_AMP, **EVERY}, 704.491),
        (GROUPED, {**HALF_AMP, **EVERY, **REENTRANT}, 351.225),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    assert step(config, 4, 1024, {**PLAIN, **more}).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)
