"""EXAONE 4.5, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_step

SMALL: dict[str, Any] = {
    "model_type": "exaone4_5",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "model_type": "exaone4",
        "pad_token_id": 0,
        "sliding_window": 512,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    },
    "vision_config": {
        "depth": 3,
        "hidden_size": 640,
        "intermediate_size": 1280,
        "num_heads": 8,
        "num_key_value_heads": 2,
        "out_hidden_size": 1024,
        "fullatt_block_indexes": [1],
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["visual"]}
SEEN: dict[str, Any] = {"images": 1, "image_patches": 4096}
FROZEN = {"frozen_modules": ["visual"]}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 767.26),
        ("autocast", 1007.71),
        ("fp32", 1436.82),
        ("eager", 1338.88),
        ("checkpointed", 409.63),
        ("reentrant", 417.63),
        ("adapters on queries", 652.87),
        ("padded", 787.26),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 1527.64),
        ("autocast", 1854.43),
        ("fp32", 4108.38),
        ("eager", 4401.73),
        ("checkpointed", 571.33),
        ("autocast, checkpointed", 786.05),
        ("adapters on queries", 706.12),
        ("adapters, reentrant", 570.73),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    found = counted_step(SMALL, 2, 2048, "autocast", SEEN, **FROZEN)
    assert found == pytest.approx(1078.41, rel=0.0005)
