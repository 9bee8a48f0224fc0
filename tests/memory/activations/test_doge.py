"""Doge's layers against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

GROUPED: dict[str, Any] = {
    "model_type": "doge",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
}
CHOOSING: dict[str, Any] = {**GROUPED, "keep_window_size": 256}
PLAIN: dict[str, Any] = {**GROUPED, "num_key_value_heads": 16}
EXPERTS: dict[str, Any] = {**GROUPED, "is_moe": True, "num_experts": 256, "num_experts_per_tok": 4}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (GROUPED, BF16, 817.55),
        (GROUPED, AMP, 1022.95),
        (GROUPED, FP32, 1470.36),
        (GROUPED, {**BF16, "attention": "eager"}, 1521.08),
        (GROUPED, {**BF16, **GC}, 493.13),
        (GROUPED, {**BF16, **REENTRANT}, 509.13),
        (GROUPED, {**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 916.93),
        (GROUPED, {**AMP, **EVERY, "lora_dtype": "fp32"}, 1000.11),
        (CHOOSING, BF16, 849.55),
        (CHOOSING, AMP, 1054.95),
        (CHOOSING, {**BF16, "attention": "eager"}, 1553.08),
        (PLAIN, AMP, 1213.29),
        (PLAIN, {**BF16, "attention": "eager"}, 1574.08),
        (EXPERTS, BF16, 950.42),
        (EXPERTS, AMP, 1186.75),
        (EXPERTS, {**BF16, **GC}, 511.44),
        (EXPERTS, {**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 992.59),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("SmallDoge/Doge-160M")
    assert facts is not None and facts.parameters == pytest.approx(152e6, rel=0.02)


def test_rows_that_sdpa_fills_up() -> None:
    """999 tokens: the mask is copied once more, on either way."""
    more = {**AMP, **EVERY, **GC, "lora_dtype": "fp32"}
    assert step(GROUPED, 3, 999, more).allocated_bytes / MIB == pytest.approx(589.32, rel=2e-4)
