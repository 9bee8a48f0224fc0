"""LLaVA-NeXT-Video on images and without any, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_step

SMALL: dict[str, Any] = {
    "model_type": "llava_next_video",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "model_type": "llama",
    },
    "vision_config": {
        "model_type": "clip_vision_model",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "image_size": 336,
        "patch_size": 14,
        "projection_dim": 64,
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["vision_tower", "multi_modal_projector"]}
SEEN: dict[str, Any] = {"images": 1, "image_tiles": 5}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 618.08),
        ("autocast", 866.64),
        ("fp32", 1511.25),
        ("eager", 1243.68),
        ("checkpointed", 311.78),
        ("reentrant", 319.78),
        ("adapters on queries", 522.21),
        ("padded", 678.08),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("eager", 7752.63),
        ("checkpointed", 579.58),
        ("autocast, checkpointed", 815.77),
        ("adapters", 1780.52),
        ("adapters, reentrant", 760.9),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 4096, way, SEEN) == pytest.approx(counted, rel=0.0005)
