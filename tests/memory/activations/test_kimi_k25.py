"""Kimi K2.5, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, REENTRANT
from tests.memory.activations.seeing import ALL, counted_step
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP

SMALL: dict[str, Any] = {
    "model_type": "kimi_k25",
    "text_config": {
        "model_type": "deepseek_v3",
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 2,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "vocab_size": 1000,
        "q_lora_rank": 256,
        "kv_lora_rank": 128,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "n_routed_experts": 16,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 256,
        "n_group": 1,
        "topk_group": 1,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
    },
    "vision_config": {"hidden_size": 640, "intermediate_size": 1280, "num_hidden_layers": 3, "num_attention_heads": 8},
    "projection_hidden_size": 640,
}
TEXT: dict[str, Any] = {"images": 0, "frozen_modules": ["vision_tower", "mm_projector"]}
SEEN: dict[str, Any] = {"images": 1, "image_patches": 4096}
FROZEN = {"frozen_modules": ["vision_tower"]}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 853.51),
        (AMP, 1108.13),
        (FP32, 1359.54),
        ({**BF16, "attention": "eager"}, 1616.2),
        ({**BF16, **GC}, 601.33),
        ({**BF16, **REENTRANT}, 641.21),
        ({**BF16, "padded_batches": True}, 869.51),
    ],
)
def test_text_alone(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, more, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (AMP, 1762.11),
        (FP32, 2267.36),
        ({**AMP, **GC}, 990.56),
        ({**HALF_AMP, **ALL, **REENTRANT}, 569.52),
        ({**AMP, **FROZEN}, 1194.57),
    ],
)
def test_an_image_to_a_sequence(more: dict[str, Any], counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, more, SEEN) == pytest.approx(counted, rel=0.0005)
