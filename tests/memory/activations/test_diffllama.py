"""DiffLlama's layers against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

GROUPED: dict[str, Any] = {
    "model_type": "diffllama",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
}
WIDE: dict[str, Any] = {**GROUPED, "hidden_size": 512, "num_key_value_heads": 16, "head_dim": 64}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (GROUPED, BF16, 517.48),
        (GROUPED, AMP, 707.60),
        (GROUPED, FP32, 2220.46),
        (GROUPED, {**BF16, "attention": "eager"}, 2286.34),
        (GROUPED, {**BF16, **GC}, 299.83),
        (GROUPED, {**BF16, **REENTRANT}, 307.83),
        (GROUPED, {**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 512.17),
        (GROUPED, {**BF16, "padded_batches": True}, 601.48),
        (WIDE, FP32, 795.73),
        (WIDE, {**BF16, "attention": "eager"}, 2210.40),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("kajuma/DiffLlama-1B")
    assert facts is not None and facts.parameters == pytest.approx(1.38e9, rel=0.1)
