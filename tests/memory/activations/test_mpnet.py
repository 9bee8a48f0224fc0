"""MPNet with the masked-language-model head against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, with ``AutoModelForMaskedLM`` in the place of a causal
language model: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, LORA
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "mpnet", "vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8,
    "intermediate_size": 2048, "max_position_embeddings": 1026,
}  # fmt: skip
STILL = {**SMALL, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
FEW = {**LORA, "lora_targets": ["q", "v"], "lora_dtype": "fp32"}
ALL = {**EVERY, "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 814.75),
        (SMALL, AMP, 1293.30),
        (SMALL, FP32, 1515.27),
        (SMALL, {**HALF_AMP, **ALL}, 1201.14),
        (SMALL, {**AMP, **ALL}, 1298.15),
        (SMALL, {**HALF_AMP, **FEW}, 1122.02),
        (SMALL, {**AMP, **FEW}, 1219.03),
        (SMALL, {**BF16, "padded_batches": True}, 822.78),
        (SMALL, {**AMP, "padded_batches": True}, 1373.33),
        (STILL, BF16, 516.75),
        (STILL, AMP, 1110.80),
        (STILL, {**HALF_AMP, **ALL}, 1000.99),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=1e-4)


@pytest.mark.parametrize(("more", "counted"), [(BF16, 84.55), (AMP, 148.82)])
def test_one_sequence_is_not_copied_for_its_products(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 1, 512, more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 240.56),
        (AMP, 530.61),
        ({**AMP, **ALL}, 519.49),
    ],
)
def test_an_evaluation(more: dict[str, Any], counted: float) -> None:
    evaluated = {"evaluation": {"batch_size": 4}, "gpu_memory_gib": 1000, "gradient_checkpointing": False, **more}
    moments = step(SMALL, 1, 1024, evaluated).moments
    largest = max(moment.allocated for moment in moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("microsoft/mpnet-base")
    assert facts is not None
    pooler = facts.hidden * (facts.hidden + 1)
    assert sum(tensor.total for tensor in facts.tensors if tensor.where != "head") + pooler == 109_486_464
