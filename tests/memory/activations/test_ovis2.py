"""Ovis 2, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_step

SMALL: dict[str, Any] = {
    "model_type": "ovis2",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "model_type": "qwen2",
    },
    "vision_config": {
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "image_size": 448,
        "patch_size": 14,
        "vocab_size": 4096,
        "hidden_stride": 2,
    },
    "hidden_size": 1024,
    "vocab_size": 1000,
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["vision_tower", "visual_embeddings_table"]}
SEEN: dict[str, Any] = {"images": 1, "image_tiles": 5}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 636.52),
        ("autocast", 924.73),
        ("fp32", 1548.14),
        ("eager", 1262.13),
        ("checkpointed", 330.23),
        ("reentrant", 338.23),
        ("adapters on queries", 540.53),
        ("padded", 696.52),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 1492.71),
        ("fp32", 3693.29),
        ("eager", 4325.37),
        ("checkpointed", 554.45),
        ("autocast, checkpointed", 817.28),
        ("adapters", 1496.78),
        ("adapters on queries", 1171.24),
        ("adapters, reentrant", 506.13),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)
