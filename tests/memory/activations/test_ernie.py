"""ERNIE with its masked-language-model head against torch's own count under fake tensors.

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
    "model_type": "ernie", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 8, "max_position_embeddings": 1024, "vocab_size": 1000, "use_task_id": True,
}  # fmt: skip
FIRST = {**SMALL, "use_task_id": False}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 344.88),
        (SMALL, AMP, 492.56),
        (SMALL, FP32, 670.86),
        (SMALL, {**BF16, "attention": "eager"}, 984.38),
        (SMALL, {**BF16, **GC}, 140.34),
        (SMALL, {**BF16, **REENTRANT}, 148.34),
        (SMALL, {**AMP, **REENTRANT}, 228.40),
        (SMALL, {**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 459.77),
        (SMALL, {**BF16, "padded_batches": True}, 376.88),
        (FIRST, BF16, 344.85),
        (FIRST, {**BF16, **GC}, 140.30),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


def test_the_published_model() -> None:
    facts = models.lookup("nghuyong/ernie-3.0-base-zh")
    assert facts is not None and facts.parameters == pytest.approx(118e6, rel=0.01)
