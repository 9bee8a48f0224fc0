"""Ovis 2, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, REENTRANT
from tests.memory.activations.seeing import ALL, QUERIES, counted_step
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP

SMALL: dict[str, Any] = {
    "model_type": "ovis2",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "model_type": "qwen2",
    },
    "vision_config": {
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "image_size": 448,
        "patch_size": 14,
        "vocab_size": 4096,
        "hidden_stride": 2,
    },
    "hidden_size": 1024,
    "vocab_size": 1000,
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["vision_tower", "visual_embeddings_table"]}
SEEN: dict[str, Any] = {"images": 1, "image_tiles": 5}
FROZEN = {"frozen_modules": ["vision_tower"]}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 636.52),
        (AMP, 924.73),
        (FP32, 1548.14),
        ({**BF16, "attention": "eager"}, 1262.13),
        ({**BF16, **GC}, 330.23),
        ({**BF16, **REENTRANT}, 338.23),
        ({**HALF_AMP, **QUERIES}, 540.53),
        ({**BF16, "padded_batches": True}, 696.52),
    ],
)
def test_text_alone(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, more, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1492.71),
        (FP32, 3693.29),
        ({**BF16, "attention": "eager"}, 4325.37),
        ({**BF16, **GC}, 554.45),
        ({**AMP, **GC}, 817.28),
        ({**HALF_AMP, **ALL}, 1496.78),
        ({**HALF_AMP, **QUERIES}, 1171.24),
        ({**HALF_AMP, **ALL, **REENTRANT}, 506.13),
    ],
)
def test_an_image_to_a_sequence(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, more, SEEN) == pytest.approx(counted, rel=0.0005)
