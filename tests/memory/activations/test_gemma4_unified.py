"""Gemma 4 without encoders, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_step

SMALL: dict[str, Any] = {
    "model_type": "gemma4_unified",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "head_dim": 128,
        "global_head_dim": 256,
        "pad_token_id": 0,
        "sliding_window": 512,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    },
    "vision_config": {"patch_size": 16, "pooling_kernel_size": 3, "mm_embed_dim": 1024, "output_proj_dims": 1024},
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["embed_vision"]}
SEEN: dict[str, Any] = {"images": 1}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 1131.34),
        ("autocast", 1340.64),
        ("fp32", 1604.64),
        ("eager", 1682.97),
        ("checkpointed", 554.03),
        ("reentrant", 570.03),
        ("adapters on queries", 806.98),
        ("padded", 1131.34),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)
