"""GLM 4.6V by the class of that name, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, REENTRANT
from tests.memory.activations.seeing import ALL, QUERIES, counted_step
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP

SMALL: dict[str, Any] = {
    "model_type": "glm46v",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "model_type": "glm4v_text",
        "pad_token_id": 0,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000,
            "partial_rotary_factor": 0.5,
            "mrope_section": [16, 8, 8],
        },
    },
    "vision_config": {
        "model_type": "glm4v_vision",
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
        (BF16, 803.78),
        (AMP, 1067.15),
        (FP32, 1729.99),
        ({**BF16, "attention": "eager"}, 1391.4),
        ({**BF16, **GC}, 421.41),
        ({**BF16, **REENTRANT}, 429.41),
        ({**HALF_AMP, **QUERIES}, 635.41),
        ({**BF16, "padded_batches": True}, 839.78),
    ],
)
def test_text_alone(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, more, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1614.49),
        (AMP, 2025.02),
        (FP32, 3693.47),
        ({**BF16, "attention": "eager"}, 7513.32),
        ({**BF16, **GC}, 619.18),
        ({**AMP, **GC}, 863.91),
        ({**HALF_AMP, **ALL}, 1484.2),
        ({**HALF_AMP, **QUERIES}, 672.25),
        ({**HALF_AMP, **ALL, **REENTRANT}, 500.88),
        ({**AMP, **FROZEN}, 1103.99),
    ],
)
def test_an_image_to_a_sequence(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, more, SEEN) == pytest.approx(counted, rel=0.0005)
