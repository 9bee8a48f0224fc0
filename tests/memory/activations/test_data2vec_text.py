"""data2vec-text with its masked-language-model head against torch's own count under fake tensors.

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
    "model_type": "data2vec-text", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 8, "max_position_embeddings": 1026, "vocab_size": 1000,
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 344.90),
        (AMP, 492.58),
        (FP32, 670.88),
        ({**BF16, "attention": "eager"}, 984.40),
        ({**BF16, **GC}, 140.36),
        ({**BF16, **REENTRANT}, 148.36),
        ({**AMP, **REENTRANT}, 228.42),
        ({**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 459.77),
        ({**BF16, "padded_batches": True}, 376.90),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    """What is left is the ids of positions and segments, 16 bytes a token."""
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=7e-4)


def test_the_published_model() -> None:
    facts = models.lookup("facebook/data2vec-text-base")
    assert facts is not None and facts.parameters == pytest.approx(124.7e6, rel=0.01)
