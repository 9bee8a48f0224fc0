"""GLM 4.6V by the class of that name, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_step

SMALL: dict[str, Any] = {
    "model_type": "glm46v",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "model_type": "glm4v_text",
        "pad_token_id": 0,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000,
            "partial_rotary_factor": 0.5,
            "mrope_section": [16, 8, 8],
        },
    },
    "vision_config": {
        "model_type": "glm4v_vision",
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
        ("bf16", 803.78),
        ("autocast", 1067.15),
        ("fp32", 1729.99),
        ("eager", 1391.4),
        ("checkpointed", 421.41),
        ("reentrant", 429.41),
        ("adapters on queries", 635.41),
        ("padded", 839.78),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 1614.49),
        ("autocast", 2025.02),
        ("fp32", 3693.47),
        ("eager", 7513.32),
        ("checkpointed", 619.18),
        ("autocast, checkpointed", 863.91),
        ("adapters", 1484.2),
        ("adapters on queries", 672.25),
        ("adapters, reentrant", 500.88),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    found = counted_step(SMALL, 2, 2048, "autocast", SEEN, **FROZEN)
    assert found == pytest.approx(1103.99, rel=0.0005)
