"""Video-LLaVA, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_evaluation, counted_step

SMALL: dict[str, Any] = {
    "model_type": "video_llava",
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
        "image_size": 224,
        "patch_size": 14,
        "projection_dim": 64,
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["video_tower", "image_tower", "multi_modal_projector"]}
SEEN: dict[str, Any] = {"images": 1, "frozen_modules": ["video_tower"]}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 642.66),
        ("autocast", 915.8),
        ("fp32", 1560.41),
        ("eager", 1268.26),
        ("checkpointed", 336.36),
        ("reentrant", 344.36),
        ("adapters", 692.27),
        ("padded", 702.66),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 676.11),
        ("autocast", 981.08),
        ("fp32", 2264.91),
        ("eager", 2093.84),
        ("checkpointed", 343.61),
        ("autocast, checkpointed", 543.34),
        ("adapters", 763.02),
        ("adapters on queries", 603.36),
        ("adapters, reentrant", 411.08),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    beside = {**SEEN, "frozen_modules": ["video_tower", "image_tower"]}
    assert counted_step(SMALL, 2, 2048, "autocast", beside) == pytest.approx(922.64, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "seen", "counted"),
    [
        ("bf16", False, 180.24),
        ("autocast", True, 390.21),
    ],
)
def test_an_evaluation(way: str, seen: bool, counted: float) -> None:
    shape = (2, 2048, way, SEEN) if seen else (4, 1024, way, TEXT)
    assert counted_evaluation(SMALL, *shape) == pytest.approx(counted, rel=0.0005)
