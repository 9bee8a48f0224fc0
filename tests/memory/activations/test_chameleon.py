"""Chameleon's layers and head against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "chameleon",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
    "vocabulary_map": {"<image>": 5, "IMGIMGAZ": 6, "IMGIMGBZ": 7},
    "vq_config": {"base_channels": 32, "latent_channels": 32, "embed_dim": 32, "num_embeddings": 64},
}
SWIN: dict[str, Any] = {**SMALL, "swin_norm": True}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 477.20),
        (SMALL, AMP, 674.51),
        (SMALL, FP32, 1619.99),
        (SMALL, {**BF16, "attention": "eager"}, 1474.68),
        (SMALL, {**BF16, **GC}, 281.31),
        (SMALL, {**BF16, **REENTRANT}, 289.31),
        (SMALL, {**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 503.89),
        (SMALL, {**BF16, "padded_batches": True}, 517.20),
        (SWIN, BF16, 477.20),
        (SWIN, AMP, 642.51),
        (SWIN, {**BF16, **GC}, 309.30),
        (SWIN, {**AMP, **REENTRANT}, 454.61),
        (SWIN, {**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 511.81),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("facebook/chameleon-7b")
    assert facts is not None and facts.parameters == pytest.approx(7.04e9, rel=0.01)
