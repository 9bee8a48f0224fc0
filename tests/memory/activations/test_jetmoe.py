"""JetMoE's layers against torch's own count of small models under fake tensors, tokens spread evenly over the experts.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "jetmoe",
    "hidden_size": 1024,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_key_value_heads": 8,
    "kv_channels": 64,
    "vocab_size": 1000,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "tie_word_embeddings": False,
}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 667.73),
        (AMP, 954.05),
        (FP32, 1173.98),
        ({**BF16, "attention": "eager"}, 1595.00),
        ({**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 531.20),
        ({**AMP, **EVERY, "lora_dtype": "fp32"}, 781.86),
        ({**BF16, "padded_batches": True}, 683.73),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("jetmoe/jetmoe-8b")
    assert facts is not None and facts.parameters == pytest.approx(8.5e9, rel=0.01)
