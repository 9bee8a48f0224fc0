"""Qwen 3 Omni's thinker, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_evaluation, counted_step

SMALL: dict[str, Any] = {
    "model_type": "qwen3_omni_moe_thinker",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "head_dim": 128,
        "moe_intermediate_size": 256,
        "num_experts": 16,
        "num_experts_per_tok": 4,
    },
    "vision_config": {
        "depth": 4,
        "hidden_size": 640,
        "intermediate_size": 1280,
        "num_heads": 8,
        "out_hidden_size": 1024,
        "deepstack_visual_indexes": [0, 2],
    },
    "audio_config": {
        "d_model": 64,
        "encoder_layers": 1,
        "encoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "output_dim": 1024,
        "downsample_hidden_size": 32,
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["audio_tower", "visual"]}
SEEN: dict[str, Any] = {"images": 1, "image_patches": 4096, "frozen_modules": ["audio_tower"]}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 915.47),
        ("autocast", 1596.09),
        ("fp32", 2126.71),
        ("eager", 1529.49),
        ("checkpointed", 559.21),
        ("reentrant", 567.21),
        ("adapters on queries", 785.5),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.001)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 1709.06),
        ("autocast", 2595.16),
        ("fp32", 4081.07),
        ("eager", 9162.44),
        ("checkpointed", 784.77),
        ("autocast, checkpointed", 1353.77),
        ("adapters on queries", 875.72),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.001)


def test_a_frozen_encoder() -> None:
    beside = {**SEEN, "frozen_modules": ["audio_tower", "visual"]}
    assert counted_step(SMALL, 2, 2048, "autocast", beside) == pytest.approx(1654.75, rel=0.001)


@pytest.mark.parametrize(
    ("way", "seen", "counted"),
    [
        ("eager", False, 564.01),
        ("autocast", True, 892.95),
    ],
)
def test_an_evaluation(way: str, seen: bool, counted: float) -> None:
    shape = (2, 2048, way, SEEN) if seen else (4, 1024, way, TEXT)
    assert counted_evaluation(SMALL, *shape) == pytest.approx(counted, rel=0.001)
