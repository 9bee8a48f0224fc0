"""GLM OCR, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_step

SMALL: dict[str, Any] = {
    "model_type": "glm_ocr",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "pad_token_id": 0,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000,
            "partial_rotary_factor": 1.0,
            "mrope_section": [16, 24, 24],
        },
    },
    "vision_config": {
        "depth": 3,
        "hidden_size": 640,
        "num_heads": 8,
        "intermediate_size": 1280,
        "out_hidden_size": 1024,
        "image_size": 336,
        "patch_size": 14,
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["visual"]}
SEEN: dict[str, Any] = {"images": 1, "image_patches": 4096}
FROZEN = {"frozen_modules": ["visual"]}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 817.42),
        ("autocast", 1094.4),
        ("fp32", 1757.26),
        ("eager", 1405.04),
        ("checkpointed", 435.04),
        ("reentrant", 443.04),
        ("adapters on queries", 649.05),
        ("padded", 853.42),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 1854.13),
        ("autocast", 2223.03),
        ("fp32", 3954.14),
        ("eager", 7752.95),
        ("checkpointed", 629.31),
        ("autocast, checkpointed", 859.57),
        ("adapters", 1696.04),
        ("adapters on queries", 685.89),
        ("adapters, reentrant", 543.15),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    found = counted_step(SMALL, 2, 2048, "autocast", SEEN, **FROZEN)
    assert found == pytest.approx(1131.25, rel=0.0005)
