"""Kimi K2.5, with and without images, against torch's own count of a small one.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.seeing import counted_step

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
    ("way", "counted"),
    [
        ("bf16", 853.51),
        ("autocast", 1108.13),
        ("fp32", 1359.54),
        ("eager", 1616.2),
        ("checkpointed", 601.33),
        ("reentrant", 641.21),
        ("padded", 869.51),
    ],
)
def test_text_alone(way: str, counted: float) -> None:
    assert counted_step(SMALL, 4, 1024, way, TEXT) == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("way", "counted"),
    [
        ("autocast", 1762.11),
        ("fp32", 2267.36),
        ("autocast, checkpointed", 990.56),
        ("adapters, reentrant", 569.52),
    ],
)
def test_an_image_to_a_sequence(way: str, counted: float) -> None:
    assert counted_step(SMALL, 2, 2048, way, SEEN) == pytest.approx(counted, rel=0.0005)


def test_a_frozen_encoder() -> None:
    found = counted_step(SMALL, 2, 2048, "autocast", SEEN, **FROZEN)
    assert found == pytest.approx(1194.57, rel=0.0005)
