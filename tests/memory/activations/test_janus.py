"""Janus, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_evaluation, counted_step

SMALL: dict[str, Any] = {
    "model_type": "janus",
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
        "hidden_size": 512,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "image_size": 384,
        "patch_size": 16,
        "mlp_ratio": 2.0,
        "projection_dim": 1024,
    },
    "vq_config": {
        "num_embeddings": 512,
        "base_channels": 32,
        "channel_multiplier": [1, 2],
        "projection_dim": 1024,
        "image_token_embed_dim": 1024,
        "latent_channels": 32,
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["vision_model", "aligner"]}
SEEN: dict[str, Any] = {"images": 1}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 619.2),
        ("autocast", 890.01),
        ("fp32", 1513.44),
        ("eager", 1244.81),
        ("checkpointed", 312.9),
        ("reentrant", 320.9),
        ("adapters", 666.16),
        ("padded", 679.2),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 672.19),
        ("autocast", 978.4),
        ("fp32", 2252.49),
        ("eager", 2156.81),
        ("checkpointed", 328.61),
        ("autocast, checkpointed", 506.99),
        ("adapters", 755.22),
        ("adapters on queries", 596.72),
        ("adapters, reentrant", 390.47),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    beside = {**SEEN, "frozen_modules": ["vision_model"]}
    assert counted_step(SMALL, 2, 2048, "autocast", beside) == pytest.approx(907.52, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "seen", "counted"),
    [
        ("bf16", False, 168.78),
        ("autocast", True, 365.61),
    ],
)
def test_an_evaluation(way: str, seen: bool, counted: float) -> None:
    shape = (2, 2048, way, SEEN) if seen else (4, 1024, way, TEXT)
    assert counted_evaluation(SMALL, *shape) == pytest.approx(counted, rel=0.0005)
