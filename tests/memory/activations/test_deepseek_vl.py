"""DeepSeek VL, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_evaluation, counted_step

SMALL: dict[str, Any] = {
    "model_type": "deepseek_vl",
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
        "model_type": "siglip_vision_model",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "image_size": 384,
        "patch_size": 16,
        "vision_use_head": False,
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["vision_model", "aligner"]}
SEEN: dict[str, Any] = {"images": 1}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 612.28),
        ("autocast", 876.24),
        ("fp32", 1499.67),
        ("eager", 1237.89),
        ("checkpointed", 305.98),
        ("reentrant", 313.98),
        ("adapters", 658.83),
        ("padded", 672.28),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 665.27),
        ("autocast", 964.63),
        ("fp32", 2238.72),
        ("eager", 2149.89),
        ("checkpointed", 321.69),
        ("autocast, checkpointed", 493.22),
        ("adapters", 747.89),
        ("adapters on queries", 589.8),
        ("adapters, reentrant", 384.27),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    beside = {**SEEN, "frozen_modules": ["vision_model"]}
    assert counted_step(SMALL, 2, 2048, "autocast", beside) == pytest.approx(893.75, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "seen", "counted"),
    [
        ("bf16", False, 161.86),
        ("autocast", True, 351.84),
    ],
)
def test_an_evaluation(way: str, seen: bool, counted: float) -> None:
    shape = (2, 2048, way, SEEN) if seen else (4, 1024, way, TEXT)
    assert counted_evaluation(SMALL, *shape) == pytest.approx(counted, rel=0.0005)
