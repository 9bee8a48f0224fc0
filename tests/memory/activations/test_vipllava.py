"""ViP-LLaVA, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_evaluation, counted_step

SMALL: dict[str, Any] = {
    "model_type": "vipllava",
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
        "num_hidden_layers": 5,
        "num_attention_heads": 8,
        "image_size": 336,
        "patch_size": 14,
        "projection_dim": 64,
    },
    "vision_feature_layer": [-2, -3, 1],
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["vision_tower", "multi_modal_projector"]}
SEEN: dict[str, Any] = {"images": 1}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 624.09),
        ("autocast", 899.86),
        ("fp32", 1523.28),
        ("eager", 1249.7),
        ("checkpointed", 317.79),
        ("reentrant", 325.79),
        ("adapters", 671.58),
        ("padded", 684.09),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 704.2),
        ("autocast", 1033.11),
        ("fp32", 2318.09),
        ("eager", 2219.59),
        ("checkpointed", 339.08),
        ("autocast, checkpointed", 528.76),
        ("adapters", 817.33),
        ("adapters on queries", 629.52),
        ("adapters, reentrant", 410.92),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    beside = {**SEEN, "frozen_modules": ["vision_tower"]}
    assert counted_step(SMALL, 2, 2048, "autocast", beside) == pytest.approx(927.58, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "seen", "counted"),
    [
        ("bf16", False, 173.67),
        ("autocast", True, 391.27),
    ],
)
def test_an_evaluation(way: str, seen: bool, counted: float) -> None:
    shape = (2, 2048, way, SEEN) if seen else (4, 1024, way, TEXT)
    assert counted_evaluation(SMALL, *shape) == pytest.approx(counted, rel=0.0005)
