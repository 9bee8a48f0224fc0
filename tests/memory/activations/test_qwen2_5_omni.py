"""Qwen 2.5 Omni's thinker, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, REENTRANT
from tests.memory.activations.seeing import ALL, QUERIES, counted_step
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP

SMALL: dict[str, Any] = {
    "model_type": "qwen2_5_omni_thinker",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
    },
    "vision_config": {
        "depth": 3,
        "hidden_size": 640,
        "intermediate_size": 1280,
        "num_heads": 8,
        "out_hidden_size": 1024,
        "fullatt_block_indexes": [1],
    },
    "audio_config": {
        "d_model": 64,
        "encoder_layers": 1,
        "encoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "output_dim": 1024,
    },
    "vision_start_token_id": 151652,
    "vision_end_token_id": 151653,
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["audio_tower", "visual"]}
SEEN: dict[str, Any] = {"images": 1, "image_patches": 4096, "frozen_modules": ["audio_tower"]}
FROZEN = {"frozen_modules": ["audio_tower", "visual"]}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 642.44),
        (AMP, 936.18),
        (FP32, 1559.6),
        ({**BF16, "attention": "eager"}, 1268.05),
        ({**BF16, **GC}, 336.14),
        ({**BF16, **REENTRANT}, 344.14),
        ({**HALF_AMP, **QUERIES}, 546.08),
        ({**BF16, "padded_batches": True}, 702.44),
    ],
)
def test_text_alone(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, more, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1393.91),
        (AMP, 1820.07),
        (FP32, 3482.69),
        ({**BF16, "attention": "eager"}, 4340.52),
        ({**BF16, **GC}, 528.73),
        ({**AMP, **GC}, 755.36),
        ({**HALF_AMP, **ALL}, 1463.8),
        ({**HALF_AMP, **QUERIES}, 582.93),
        ({**HALF_AMP, **ALL, **REENTRANT}, 549.37),
        ({**AMP, **FROZEN}, 973.03),
    ],
)
def test_an_image_to_a_sequence(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, more, SEEN) == pytest.approx(counted, rel=0.0005)
