"""Gemma 4 without encoders, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, REENTRANT
from tests.memory.activations.seeing import QUERIES, counted_step
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP

SMALL: dict[str, Any] = {
    "model_type": "gemma4_unified",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "head_dim": 128,
        "global_head_dim": 256,
        "pad_token_id": 0,
        "sliding_window": 512,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    },
    "vision_config": {"patch_size": 16, "pooling_kernel_size": 3, "mm_embed_dim": 1024, "output_proj_dims": 1024},
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["embed_vision"]}
SEEN: dict[str, Any] = {"images": 1}
FROZEN = {"frozen_modules": ["visual"]}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1131.34),
        (AMP, 1340.64),
        (FP32, 1604.64),
        ({**BF16, "attention": "eager"}, 1682.97),
        ({**BF16, **GC}, 554.03),
        ({**BF16, **REENTRANT}, 570.03),
        ({**HALF_AMP, **QUERIES}, 806.98),
        ({**BF16, "padded_batches": True}, 1131.34),
    ],
)
def test_text_alone(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, more, TEXT) == pytest.approx(counted, rel=0.0005)
