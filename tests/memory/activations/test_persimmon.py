"""Persimmon's layers against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "persimmon", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 2,
    "num_attention_heads": 16, "vocab_size": 1000,
}  # fmt: skip
PLAIN = {**SMALL, "qk_layernorm": False}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 472.71),
        (SMALL, AMP, 678.75),
        (SMALL, FP32, 910.75),
        (SMALL, {**BF16, "attention": "eager"}, 1450.19),
        (SMALL, {**BF16, **GC}, 343.43),
        (SMALL, {**BF16, **REENTRANT}, 351.43),
        (SMALL, {**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 602.75),
        (PLAIN, BF16, 470.71),
        (PLAIN, AMP, 612.75),
        (PLAIN, {**BF16, **GC}, 342.42),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("adept/persimmon-8b-base")
    assert facts is not None and facts.parameters == pytest.approx(9.4e9, rel=0.01)
