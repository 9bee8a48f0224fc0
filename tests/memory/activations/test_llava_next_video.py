"""LLaVA-NeXT-Video on images and without any, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, REENTRANT
from tests.memory.activations.seeing import ALL, QUERIES, counted_step
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP

SMALL: dict[str, Any] = {
    "model_type": "llava_next_video",
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
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "image_size": 336,
        "patch_size": 14,
        "projection_dim": 64,
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["vision_tower", "multi_modal_projector"]}
SEEN: dict[str, Any] = {"images": 1, "image_tiles": 5}
FROZEN = {"frozen_modules": ["vision_tower"]}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 618.08),
        (AMP, 866.64),
        (FP32, 1511.25),
        ({**BF16, "attention": "eager"}, 1243.68),
        ({**BF16, **GC}, 311.78),
        ({**BF16, **REENTRANT}, 319.78),
        ({**HALF_AMP, **QUERIES}, 522.21),
        ({**BF16, "padded_batches": True}, 678.08),
    ],
)
def test_text_alone(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, more, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        ({**BF16, "attention": "eager"}, 7752.63),
        ({**BF16, **GC}, 579.58),
        ({**AMP, **GC}, 815.77),
        ({**HALF_AMP, **ALL}, 1780.52),
        ({**HALF_AMP, **ALL, **REENTRANT}, 760.9),
    ],
)
def test_an_image_to_a_sequence(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 2, 4096, more, SEEN) == pytest.approx(counted, rel=0.0005)
