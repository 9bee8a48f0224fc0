"""PaddleOCR-VL, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_evaluation, counted_step

SMALL: dict[str, Any] = {
    "model_type": "paddleocr_vl",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "head_dim": 128,
    },
    "vision_config": {
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "image_size": 384,
        "patch_size": 14,
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["visual", "projector"]}
SEEN: dict[str, Any] = {"images": 1, "image_patches": 4096}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 622.76),
        ("autocast", 897.2),
        ("fp32", 1520.62),
        ("eager", 1248.37),
        ("checkpointed", 316.46),
        ("reentrant", 324.46),
        ("adapters", 669.53),
        ("padded", 682.76),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 1008.05),
        ("autocast", 1419.09),
        ("fp32", 2888.73),
        ("eager", 6984.91),
        ("checkpointed", 412.62),
        ("autocast, checkpointed", 614.45),
        ("adapters", 1170.74),
        ("adapters on queries", 904.2),
        ("adapters, reentrant", 421.26),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    beside = {**SEEN, "frozen_modules": ["visual"]}
    assert counted_step(SMALL, 2, 2048, "autocast", beside) == pytest.approx(967.74, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "seen", "counted"),
    [
        ("bf16", False, 172.34),
        ("autocast", True, 414.71),
    ],
)
def test_an_evaluation(way: str, seen: bool, counted: float) -> None:
    shape = (2, 2048, way, SEEN) if seen else (4, 1024, way, TEXT)
    assert counted_evaluation(SMALL, *shape) == pytest.approx(counted, rel=0.0005)
