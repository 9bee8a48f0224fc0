"""Layers whose input goes to several products as it is: autocast casts a detached one once (reentrant checkpointing).

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, REENTRANT
from tests.memory.activations.steps import AMP, MIB, step

SMALL: dict[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
}
OLMO: dict[str, Any] = {**SMALL, "model_type": "olmo2"}
EXAONE: dict[str, Any] = {
    **SMALL,
    "model_type": "exaone4",
    "head_dim": 64,
    "sliding_window": None,
    "layer_types": ["full_attention"] * 2,
}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (OLMO, {}, 455.61),
        (OLMO, {**EVERY, "lora_dtype": "fp32"}, 408.98),
        (EXAONE, {}, 437.88),
        (EXAONE, {**EVERY, "lora_dtype": "fp32"}, 409.25),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    found = step(config, 4, 1024, {**AMP, **REENTRANT, **more})
    assert found.allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)
