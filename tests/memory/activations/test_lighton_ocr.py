"""LightOn OCR, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_evaluation, counted_step

SMALL: dict[str, Any] = {
    "model_type": "lighton_ocr",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "model_type": "qwen3",
        "head_dim": 128,
    },
    "vision_config": {
        "model_type": "pixtral",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "head_dim": 64,
        "image_size": 1540,
        "patch_size": 14,
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["vision_encoder", "vision_projection"]}
SEEN: dict[str, Any] = {"images": 1, "image_patches": 4096}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 706.98),
        ("autocast", 953.99),
        ("fp32", 1628.6),
        ("eager", 1332.59),
        ("checkpointed", 340.37),
        ("reentrant", 348.37),
        ("adapters", 723.97),
        ("padded", 766.98),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 1412.05),
        ("autocast", 2071.31),
        ("fp32", 3512.98),
        ("eager", 12868.81),
        ("checkpointed", 588.51),
        ("autocast, checkpointed", 1005.55),
        ("adapters", 1458.24),
        ("adapters on queries", 1160.54),
        ("adapters, reentrant", 623.97),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    beside = {**SEEN, "frozen_modules": ["vision_encoder"]}
    assert counted_step(SMALL, 2, 2048, "autocast", beside) == pytest.approx(1017.55, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "seen", "counted"),
    [
        ("bf16", False, 154.09),
        ("eager", True, 5406.09),
    ],
)
def test_an_evaluation(way: str, seen: bool, counted: float) -> None:
    shape = (2, 2048, way, SEEN) if seen else (4, 1024, way, TEXT)
    assert counted_evaluation(SMALL, *shape) == pytest.approx(counted, rel=0.0005)
