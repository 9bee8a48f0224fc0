"""DistilBERT's layers and masked-language-model head against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, with ``AutoModelForMaskedLM`` in the place of a causal
language model: MiB of a whole step with SGD, 4 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "distilbert", "dim": 512, "hidden_dim": 2048, "n_layers": 4, "n_heads": 8,
    "max_position_embeddings": 1024, "vocab_size": 1000,
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 336.83),
        (AMP, 484.50),
        (FP32, 662.80),
        ({**BF16, "attention": "eager"}, 976.32),
        ({**BF16, **GC}, 138.28),
        ({**BF16, **REENTRANT}, 146.29),
        ({**AMP, **REENTRANT}, 226.34),
        ({**BF16, **GC, "attention": "eager"}, 308.63),
        ({**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 451.76),
        ({**AMP, **EVERY, "lora_dtype": "fp32"}, 500.77),
        ({**BF16, "padded_batches": True}, 368.83),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("distilbert/distilbert-base-uncased")
    assert facts is not None and facts.parameters == pytest.approx(67e6, rel=0.01)
