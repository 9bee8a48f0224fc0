"""GLM OCR, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, REENTRANT
from tests.memory.activations.seeing import ALL, QUERIES, counted_step
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP

SMALL: dict[str, Any] = {
    "model_type": "glm_ocr",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "pad_token_id": 0,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000,
            "partial_rotary_factor": 1.0,
            "mrope_section": [16, 24, 24],
        },
    },
    "vision_config": {
        "depth": 3,
        "hidden_size": 640,
        "num_heads": 8,
        "intermediate_size": 1280,
        "out_hidden_size": 1024,
        "image_size": 336,
        "patch_size": 14,
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["visual"]}
SEEN: dict[str, Any] = {"images": 1, "image_patches": 4096}
FROZEN = {"frozen_modules": ["visual"]}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 817.42),
        (AMP, 1094.4),
        (FP32, 1757.26),
        ({**BF16, "attention": "eager"}, 1405.04),
        ({**BF16, **GC}, 435.04),
        ({**BF16, **REENTRANT}, 443.04),
        ({**HALF_AMP, **QUERIES}, 649.05),
        ({**BF16, "padded_batches": True}, 853.42),
    ],
)
def test_text_alone(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, more, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1854.13),
        (AMP, 2223.03),
        (FP32, 3954.14),
        ({**BF16, "attention": "eager"}, 7752.95),
        ({**BF16, **GC}, 629.31),
        ({**AMP, **GC}, 859.57),
        ({**HALF_AMP, **ALL}, 1696.04),
        ({**HALF_AMP, **QUERIES}, 685.89),
        ({**HALF_AMP, **ALL, **REENTRANT}, 543.15),
        ({**AMP, **FROZEN}, 1131.25),
    ],
)
def test_an_image_to_a_sequence(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, more, SEEN) == pytest.approx(counted, rel=0.0005)
