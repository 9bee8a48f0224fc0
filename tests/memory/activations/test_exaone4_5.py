"""EXAONE 4.5, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, REENTRANT
from tests.memory.activations.seeing import ALL, QUERIES, counted_step
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP

SMALL: dict[str, Any] = {
    "model_type": "exaone4_5",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "model_type": "exaone4",
        "pad_token_id": 0,
        "sliding_window": 512,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    },
    "vision_config": {
        "depth": 3,
        "hidden_size": 640,
        "intermediate_size": 1280,
        "num_heads": 8,
        "num_key_value_heads": 2,
        "out_hidden_size": 1024,
        "fullatt_block_indexes": [1],
    },
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["visual"]}
SEEN: dict[str, Any] = {"images": 1, "image_patches": 4096}
FROZEN = {"frozen_modules": ["visual"]}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 767.26),
        (AMP, 1007.71),
        (FP32, 1436.82),
        ({**BF16, "attention": "eager"}, 1338.88),
        ({**BF16, **GC}, 409.63),
        ({**BF16, **REENTRANT}, 417.63),
        ({**HALF_AMP, **QUERIES}, 652.87),
        ({**BF16, "padded_batches": True}, 787.26),
    ],
)
def test_text_alone(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, more, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1527.64),
        (AMP, 1854.43),
        (FP32, 4108.38),
        ({**BF16, "attention": "eager"}, 4401.73),
        ({**BF16, **GC}, 571.33),
        ({**AMP, **GC}, 786.05),
        ({**HALF_AMP, **QUERIES}, 706.12),
        ({**HALF_AMP, **ALL, **REENTRANT}, 570.73),
        ({**AMP, **FROZEN}, 1078.41),
    ],
)
def test_an_image_to_a_sequence(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, more, SEEN) == pytest.approx(counted, rel=0.0005)
