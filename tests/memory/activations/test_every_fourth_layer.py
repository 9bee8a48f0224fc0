"""Layers that slide but for every fourth, where a config does not name them one by one, against torch's own count.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD, 4 x 512 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC
from tests.memory.activations.steps import AMP, BF16, FP32, MIB, step

SMALL: dict[str, Any] = {
    "vocab_size": 1000, "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 2, "max_position_embeddings": 2048, "pad_token_id": 0, "sliding_window": 256,
}  # fmt: skip
PLAIN = {"gradient_checkpointing": False}


@pytest.mark.parametrize(
    ("kind", "more", "counted"),
    [
        ("cohere2", BF16, 210.864),
        ("cohere2", AMP, 279.063),
        ("cohere2", FP32, 381.407),
        ("cohere2", {**BF16, **GC}, 85.182),
        ("exaone4", BF16, 244.183),
        ("exaone4", AMP, 307.372),
        ("olmo3", BF16, 272.311),
        ("olmo3", AMP, 333.379),
        ("olmo3", {**BF16, **GC}, 107.316),
    ],
)
def test_torchs_own_count(kind: str, more: dict[str, Any], counted: float) -> None:
    """The fourth has no mask, no repeated keys and values, with Cohere no rotary; OLMo 3 has tables of both kinds."""
    config = {**SMALL, "model_type": kind}
    found = step(config, 4, 512, {**PLAIN, **more}).allocated_bytes
    assert found / MIB == pytest.approx(counted, rel=2e-4)
    named = [*["sliding_attention"] * 3, "full_attention"]
    assert step({**config, "layer_types": named}, 4, 512, {**PLAIN, **more}).allocated_bytes == found


@pytest.mark.parametrize("kind", ["cohere2", "exaone4"])
def test_a_pattern_of_the_configs_own(kind: str) -> None:
    config = {**SMALL, "model_type": kind}
    second, fourth = (
        step({**config, "sliding_window_pattern": every}, 4, 512, {**PLAIN, **BF16}).allocated_bytes for every in (2, 4)
    )
    assert second < fourth
