"""Gemma 3n with its encoders, on text alone, against torch's own count of a small one.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import WAYS, counted_evaluation, counted_step
from tests.memory.activations.steps import step

SMALL: dict[str, Any] = {
    "model_type": "gemma3n",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 10,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "vocab_size": 32000,
        "hidden_size_per_layer_input": 64,
        "vocab_size_per_layer_input": 500,
        "num_kv_shared_layers": 5,
    },
    "audio_config": {"hidden_size": 64, "conf_num_hidden_layers": 1, "conf_num_attention_heads": 4},
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["vision_tower", "audio_tower"]}


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 7966.6),
        ("autocast", 10830.94),
        ("fp32", 11964.17),
        ("eager", 9849.34),
        ("checkpointed", 3208.96),
        ("reentrant", 3208.96),
        ("padded", 8010.6),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("bf16", 2090.81),
        ("autocast", 3181.37),
    ],
)
def test_an_evaluation(way: str, counted: float) -> None:
    assert counted_evaluation(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


def test_images_are_unknown() -> None:
    found = step(SMALL, 1, 1024, {**WAYS["bf16"], "images": 1, "gpu_memory_gib": 80})
    assert found.verdict == "unknown"
