"""Qwen 2.5 Omni's thinker, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_step

SMALL: dict[str, Any] = {
    "model_type": "qwen2_5_omni_thinker",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
    },
    "vision_config": {
        "depth": 3,
        "hidden_size": 640,
        "intermediate_size": 1280,
        "num_heads": 8,
        "out_hidden_size": 1024,
        "fullatt_block_indexes": [1],
    },
    "audio_config": {
        "d_model": 64,
        "encoder_layers": 1,
        "encoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "output_dim": 1024,
    },
    "vision_start_token_id": 151652,
    "vision_end_token_id": 151653,
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["audio_tower", "visual"]}
SEEN: dict[str, Any] = {"images": 1, "image_patches": 4096, "frozen_modules": ["audio_tower"]}
FROZEN = {"frozen_modules": ["audio_tower", "visual"]}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 642.44),
        ("autocast", 936.18),
        ("fp32", 1559.6),
        ("eager", 1268.05),
        ("checkpointed", 336.14),
        ("reentrant", 344.14),
        ("adapters on queries", 546.08),
        ("padded", 702.44),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 1393.91),
        ("autocast", 1820.07),
        ("fp32", 3482.69),
        ("eager", 4340.52),
        ("checkpointed", 528.73),
        ("autocast, checkpointed", 755.36),
        ("adapters", 1463.8),
        ("adapters on queries", 582.93),
        ("adapters, reentrant", 549.37),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    found = counted_step(SMALL, 2, 2048, "autocast", SEEN, **FROZEN)
    assert found == pytest.approx(973.03, rel=0.0005)
