"""BioGPT's layers against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "biogpt",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "vocab_size": 1000,
}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 391.58),
        (AMP, 573.84),
        (FP32, 748.61),
        ({**BF16, "attention": "eager"}, 1044.12),
        ({**BF16, **GC}, 270.36),
        ({**BF16, **REENTRANT}, 278.36),
        ({**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 535.56),
        ({**AMP, **EVERY, "lora_dtype": "fp32"}, 623.55),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("microsoft/biogpt")
    assert facts is not None and facts.parameters == pytest.approx(346.8e6, rel=0.01)
