"""XGLM's layers against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "xglm",
    "d_model": 1024,
    "ffn_dim": 4096,
    "num_layers": 2,
    "attention_heads": 16,
    "vocab_size": 1000,
}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1350.11),
        (AMP, 2286.10),
        (FP32, 2496.10),
        ({**BF16, **GC}, 798.07),
        ({**BF16, **REENTRANT}, 814.07),
        ({**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 1818.90),
        ({**AMP, **EVERY, "lora_dtype": "fp32"}, 2224.90),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("facebook/xglm-7.5B")
    assert facts is not None and facts.parameters == pytest.approx(7.5e9, rel=0.01)
